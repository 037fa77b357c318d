#include <cuda_fp16.h>

constexpr int D = 64, KEYS = 32, PITCH = D + 8;    // 16 bytes more a row: eight rows of ldmatrix lie in all banks
constexpr float LOG2_E = 1.4426950408889634f;

__device__ __forceinline__ unsigned address(const __half* p) { return static_cast<unsigned>(__cvta_generic_to_shared(p)); }
__device__ __forceinline__ void ldmatrix_x4(unsigned (&r)[4], unsigned from) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(from) : "memory");
}
__device__ __forceinline__ void ldmatrix_x4_trans(unsigned (&r)[4], unsigned from) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(from) : "memory");
}
__device__ __forceinline__ void mma(float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
__device__ __forceinline__ float exp2_approx(float x) {
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}
__device__ __forceinline__ unsigned pack(float a, float b) {
    const __half2 both = __floats2half2_rn(a, b);
    return *reinterpret_cast<const unsigned*>(&both);
}

// A warp owns 16 query rows; scores, probabilities and results never leave its registers.
template <bool CAUSAL>
__global__ void __launch_bounds__(128)
attention_flash(const __half* __restrict__ q, const __half* __restrict__ k, const __half* __restrict__ v, __half* __restrict__ out,
                int S, float scale) {
    __shared__ __align__(16) __half Qs[64 * PITCH], Ks[KEYS * PITCH], Vs[KEYS * PITCH];
    const int tid = threadIdx.x, lane = tid % 32, warp = tid / 32, row0 = blockIdx.x * 64;
    const size_t head = size_t(blockIdx.y) * S * D;
    const uint4 zero = make_uint4(0, 0, 0, 0);
    auto load = [&](__half* to, const __half* from, int first, int rows) {
        for (int i = tid; i < rows * D / 8; i += 128) {
            const int r = i / (D / 8), c = i % (D / 8) * 8;
            *reinterpret_cast<uint4*>(&to[r * PITCH + c]) =
                first + r < S ? *reinterpret_cast<const uint4*>(&from[head + (first + r) * D + c]) : zero;
        }
    };
    load(Qs, q, row0, 64);
    __syncthreads();
    unsigned q_frag[D / 16][4];
    for (int d = 0; d < D / 16; ++d) ldmatrix_x4(q_frag[d], address(&Qs[(warp * 16 + lane % 16) * PITCH + d * 16 + lane / 16 * 8]));

    float o[D / 8][4] = {}, top[2] = {-INFINITY, -INFINITY}, sum[2] = {0.f, 0.f};
    const float factor = scale * LOG2_E;
    const int upper = row0 + warp * 16 + lane / 4;     // this lane's rows: upper and upper + 8
    const int end = CAUSAL ? min(S, row0 + 64) : S;
    for (int first = 0; first < end; first += KEYS) {
        __syncthreads();
        load(Ks, k, first, KEYS);
        load(Vs, v, first, KEYS);
        __syncthreads();
        float s[KEYS / 8][4] = {};
#pragma unroll
        for (int d = 0; d < D / 16; ++d)
#pragma unroll
            for (int n = 0; n < KEYS / 16; ++n) {
                unsigned b[4];
                ldmatrix_x4(b, address(&Ks[(n * 16 + lane % 8 + lane / 16 * 8) * PITCH + d * 16 + lane / 8 % 2 * 8]));
                mma(s[2 * n], q_frag[d], b[0], b[1]);
                mma(s[2 * n + 1], q_frag[d], b[2], b[3]);
            }
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            const int row = upper + 8 * h;
            float peak = top[h];
#pragma unroll
            for (int n = 0; n < KEYS / 8; ++n)
#pragma unroll
                for (int e = 2 * h; e < 2 * h + 2; ++e) {
                    const int key = first + n * 8 + lane % 4 * 2 + e % 2;
                    s[n][e] = key >= S || (CAUSAL && key > row) ? -INFINITY : s[n][e] * factor;
                    peak = fmaxf(peak, s[n][e]);
                }
            peak = fmaxf(peak, __shfl_xor_sync(0xffffffff, peak, 1));
            peak = fmaxf(peak, __shfl_xor_sync(0xffffffff, peak, 2));
            const float shrink = exp2_approx(top[h] - peak);    // the first key is in the first tile: peak is finite
            top[h] = peak;
            float part = 0.0f;
#pragma unroll
            for (int n = 0; n < KEYS / 8; ++n)
#pragma unroll
                for (int e = 2 * h; e < 2 * h + 2; ++e) part += s[n][e] = exp2_approx(s[n][e] - peak);
            sum[h] = sum[h] * shrink + part;
#pragma unroll
            for (int n = 0; n < D / 8; ++n) o[n][2 * h] *= shrink, o[n][2 * h + 1] *= shrink;
        }
#pragma unroll
        for (int j = 0; j < KEYS / 16; ++j) {
            const unsigned p[4] = {pack(s[2 * j][0], s[2 * j][1]), pack(s[2 * j][2], s[2 * j][3]), pack(s[2 * j + 1][0], s[2 * j + 1][1]),
                                   pack(s[2 * j + 1][2], s[2 * j + 1][3])};
#pragma unroll
            for (int n = 0; n < D / 16; ++n) {
                unsigned b[4];
                ldmatrix_x4_trans(b, address(&Vs[(j * 16 + lane % 16) * PITCH + n * 16 + lane / 16 * 8]));
                mma(o[2 * n], p, b[0], b[1]);
                mma(o[2 * n + 1], p, b[2], b[3]);
            }
        }
    }
#pragma unroll
    for (int h = 0; h < 2; ++h) {
        sum[h] += __shfl_xor_sync(0xffffffff, sum[h], 1);
        sum[h] += __shfl_xor_sync(0xffffffff, sum[h], 2);
        const int row = upper + 8 * h;
        if (row >= S) continue;
        const float inverse = 1.0f / sum[h];
#pragma unroll
        for (int n = 0; n < D / 8; ++n)
            *reinterpret_cast<unsigned*>(&out[head + row * D + n * 8 + lane % 4 * 2]) =
                pack(o[n][2 * h] * inverse, o[n][2 * h + 1] * inverse);
    }
}
