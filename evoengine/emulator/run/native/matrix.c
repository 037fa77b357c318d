/* mma.sync, 9.7.14.5: fragments in the layout of the PTX ISA, registers of 32 lanes one after another. */
#include "lanes.h"
#include "tile.h"

#define MMA_F32(shape, name, depth, kind_a, kind_b)                                                                                     \
    void ev_mma_##shape##_f32_##name(const uint32_t *a, const uint32_t *b, const float *c, float *d) {                                  \
        mma_f32(a, b, c, d, depth, kind_a, kind_b, ONE);                                                                                \
    }
#define MMA_F16(shape, name, depth, kind_a, kind_b)                                                                                     \
    void ev_mma_##shape##_f16_##name(const uint32_t *a, const uint32_t *b, const uint32_t *c, uint32_t *d) {                            \
        mma_f16(a, b, c, d, depth, kind_a, kind_b, ONE);                                                                                \
    }
#define MMA_S32(shape, name, depth, kind_a, kind_b)                                                                                     \
    void ev_mma_##shape##_s32_##name(const uint32_t *a, const uint32_t *b, const int32_t *c, int32_t *d) {                              \
        mma_s32(a, b, c, d, depth, kind_a, kind_b, ONE, 0);                                                                             \
    }                                                                                                                                   \
    void ev_mma_##shape##_satfinite_s32_##name(const uint32_t *a, const uint32_t *b, const int32_t *c, int32_t *d) {                    \
        mma_s32(a, b, c, d, depth, kind_a, kind_b, ONE, 1);                                                                             \
    }

MMA_F32(m16n8k16, f16, 2, F16, F16)
MMA_F32(m16n8k8, f16, 1, F16, F16)
MMA_F16(m16n8k16, f16, 2, F16, F16)
MMA_F16(m16n8k8, f16, 1, F16, F16)
MMA_F32(m16n8k16, bf16, 2, BF16, BF16)
MMA_F32(m16n8k8, bf16, 1, BF16, BF16)
MMA_F32(m16n8k8, tf32, 2, TF32, TF32)
MMA_F32(m16n8k4, tf32, 1, TF32, TF32)
MMA_F32(m16n8k32, e4m3_e4m3, 2, E4M3, E4M3)
MMA_F32(m16n8k32, e4m3_e5m2, 2, E4M3, E5M2)
MMA_F32(m16n8k32, e5m2_e4m3, 2, E5M2, E4M3)
MMA_F32(m16n8k32, e5m2_e5m2, 2, E5M2, E5M2)
MMA_F32(m16n8k16, e4m3_e4m3, 1, E4M3, E4M3)
MMA_F32(m16n8k16, e4m3_e5m2, 1, E4M3, E5M2)
MMA_F32(m16n8k16, e5m2_e4m3, 1, E5M2, E4M3)
MMA_F32(m16n8k16, e5m2_e5m2, 1, E5M2, E5M2)
MMA_F16(m16n8k32, e4m3_e4m3, 2, E4M3, E4M3)
MMA_F16(m16n8k32, e4m3_e5m2, 2, E4M3, E5M2)
MMA_F16(m16n8k32, e5m2_e4m3, 2, E5M2, E4M3)
MMA_F16(m16n8k32, e5m2_e5m2, 2, E5M2, E5M2)
MMA_S32(m16n8k32, s8_s8, 2, S8, S8)
MMA_S32(m16n8k32, s8_u8, 2, S8, U8)
MMA_S32(m16n8k32, u8_s8, 2, U8, S8)
MMA_S32(m16n8k32, u8_u8, 2, U8, U8)
MMA_S32(m16n8k16, s8_s8, 1, S8, S8)
MMA_S32(m16n8k16, s8_u8, 1, S8, U8)
MMA_S32(m16n8k16, u8_s8, 1, U8, S8)
MMA_S32(m16n8k16, u8_u8, 1, U8, U8)

/* Lane (g, t) holds A[g][t] and B[t][g], and accumulators C[g][2t], C[g][2t + 1]. */
void ev_mma_m8n8k4_f64(const double *a, const double *b, const double *c, double *d) {
    double sum[2][LANES];
    for (int lane = 0; lane < LANES; ++lane)
        for (int odd = 0; odd < 2; ++odd) {
            int row = lane / 4, column = lane % 4 * 2 + odd;
            double x = c[odd * LANES + lane];
            for (int k = 0; k < 4; ++k)
                x = __builtin_fma(a[4 * row + k], b[4 * column + k], x);
            sum[odd][lane] = x;
        }
    for (int i = 0; i < 2 * LANES; ++i)
        d[i] = sum[i / LANES][i % LANES];
}
