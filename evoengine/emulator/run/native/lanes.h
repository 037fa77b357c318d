/* The functions of the C runtime that lowered kernels call, over the 32 lanes of a warp.

   Arrays have 32 elements, one per lane, and are aligned to 64 bytes; a result may be the same array as an argument. All lanes
   are computed, unless a function takes a mask (bit i = lane i), because it accesses memory or combines lanes. f16 and bf16 are
   passed as their bits in uint16_t, pairs of them (f16x2) as uint32_t with element 0 in the low half, fp8 as uint8_t, pairs of
   fp8 as uint16_t. Section numbers are those of the PTX ISA 8.x.

   A line such as EV_UNARY(float, ev_ex2_approx_f32) declares void ev_ex2_approx_f32(const float *x, float *y). */
#ifndef EV_LANES_H
#define EV_LANES_H
#include "vector.h"

#define EV_CONVERSION(from, to, name) void name(const from *x, to *y);
#define EV_UNARY(type, name) void name(const type *x, type *y);
#define EV_BINARY(type, name) void name(const type *x, const type *y, type *z);
#define EV_TERNARY(type, name) void name(const type *a, const type *b, const type *c, type *d);

/* ---- math.c: approximate instructions, 9.7.3 and 9.7.4. NaN results are the canonical 0x7fffffff (0x7fff). ---------- */

EV_UNARY(float, ev_ex2_approx_f32)       /* below 1 ulp */
EV_UNARY(float, ev_ex2_approx_ftz_f32)   /* .ftz: subnormal arguments and results are zeros of their sign */
EV_UNARY(float, ev_lg2_approx_f32)       /* below 2 ulp */
EV_UNARY(float, ev_lg2_approx_ftz_f32)
EV_UNARY(float, ev_sin_approx_f32)       /* below 2 ulp, also for large arguments, where a GPU is far off */
EV_UNARY(float, ev_sin_approx_ftz_f32)
EV_UNARY(float, ev_cos_approx_f32)
EV_UNARY(float, ev_cos_approx_ftz_f32)
EV_UNARY(float, ev_tanh_approx_f32)      /* below 2 ulp; a GPU: 2^-11 */
EV_UNARY(float, ev_rcp_approx_f32)       /* 1 / x, correctly rounded */
EV_UNARY(float, ev_rcp_approx_ftz_f32)
EV_UNARY(float, ev_sqrt_approx_f32)      /* correctly rounded */
EV_UNARY(float, ev_sqrt_approx_ftz_f32)
EV_UNARY(float, ev_rsqrt_approx_f32)     /* 1 / sqrt(x), below 1.5 ulp */
EV_UNARY(float, ev_rsqrt_approx_ftz_f32)
EV_UNARY(double, ev_rcp_approx_ftz_f64)  /* 20 bits of mantissa, as documented: the low word is ignored and 0 in the result */
EV_UNARY(double, ev_rsqrt_approx_ftz_f64)
EV_UNARY(uint16_t, ev_ex2_approx_f16)    /* in float, rounded once */
EV_UNARY(uint32_t, ev_ex2_approx_f16x2)
EV_UNARY(uint16_t, ev_ex2_approx_ftz_bf16)
EV_UNARY(uint32_t, ev_ex2_approx_ftz_bf16x2)
EV_UNARY(uint16_t, ev_tanh_approx_f16)
EV_UNARY(uint32_t, ev_tanh_approx_f16x2)
EV_UNARY(uint16_t, ev_tanh_approx_bf16)
EV_UNARY(uint32_t, ev_tanh_approx_bf16x2)

/* ---- matrix.c: mma.sync, 9.7.14.5. Registers of a fragment one after another: a[registers][32] and so on. ------------
   Products and sums in float by fma, k ascending; f16 accumulators are rounded once, at the end. d may be c, not a or b. */

#define EV_MMA(name, accumulator) void name(const uint32_t *a, const uint32_t *b, const accumulator *c, accumulator *d);
#define EV_MMA_FP8(shape, to, accumulator)                                                                                      \
    EV_MMA(ev_mma_##shape##_##to##_e4m3_e4m3, accumulator) EV_MMA(ev_mma_##shape##_##to##_e4m3_e5m2, accumulator)               \
    EV_MMA(ev_mma_##shape##_##to##_e5m2_e4m3, accumulator) EV_MMA(ev_mma_##shape##_##to##_e5m2_e5m2, accumulator)
#define EV_MMA_INTEGER(prefix)                                                                                                  \
    EV_MMA(prefix##_s8_s8, int32_t) EV_MMA(prefix##_s8_u8, int32_t) EV_MMA(prefix##_u8_s8, int32_t) EV_MMA(prefix##_u8_u8, int32_t)

EV_MMA(ev_mma_m16n8k16_f32_f16, float)    /* a[4] b[2] c[4] d[4] */
EV_MMA(ev_mma_m16n8k8_f32_f16, float)     /* a[2] b[1] c[4] d[4] */
EV_MMA(ev_mma_m16n8k16_f16_f16, uint32_t) /* a[4] b[2] c[2] d[2]: f16x2 accumulators */
EV_MMA(ev_mma_m16n8k8_f16_f16, uint32_t)  /* a[2] b[1] c[2] d[2] */
EV_MMA(ev_mma_m16n8k16_f32_bf16, float)   /* a[4] b[2] c[4] d[4] */
EV_MMA(ev_mma_m16n8k8_f32_bf16, float)    /* a[2] b[1] c[4] d[4] */
EV_MMA(ev_mma_m16n8k8_f32_tf32, float)    /* a[4] b[2] c[4] d[4]; the low 13 bits of a and b are ignored */
EV_MMA(ev_mma_m16n8k4_f32_tf32, float)    /* a[2] b[1] c[4] d[4] */
EV_MMA_FP8(m16n8k32, f32, float)          /* a[4] b[2] c[4] d[4]: ev_mma_m16n8k32_f32_e4m3_e5m2 and so on, type of a first */
EV_MMA_FP8(m16n8k16, f32, float)          /* a[2] b[1] c[4] d[4] */
EV_MMA_FP8(m16n8k32, f16, uint32_t)       /* a[4] b[2] c[2] d[2] */
EV_MMA_INTEGER(ev_mma_m16n8k32_s32)       /* a[4] b[2] c[4] d[4], modulo 2^32: ev_mma_m16n8k32_s32_s8_u8 and so on */
EV_MMA_INTEGER(ev_mma_m16n8k16_s32)       /* a[2] b[1] c[4] d[4] */
EV_MMA_INTEGER(ev_mma_m16n8k32_satfinite_s32) /* the sum with c saturates */
EV_MMA_INTEGER(ev_mma_m16n8k16_satfinite_s32)
void ev_mma_m8n8k4_f64(const double *a, const double *b, const double *c, double *d); /* a[1] b[1] c[2] d[2] */

/* ---- wmma.c: wmma, ldmatrix, stmatrix. p is the host address of the tile, the same for the warp; stride in elements. ----
   Layouts: see the file. Fragments are registers of 32 bits (of 64 nowhere), also those of float and s32. */

#define EV_WMMA_SHAPES(each, ...) each(m16n16k16, __VA_ARGS__) each(m32n8k16, __VA_ARGS__) each(m8n32k16, __VA_ARGS__)
#define EV_WMMA_LOAD(shape, type)                                                                                               \
    void ev_wmma_load_a_##shape##_##type(const void *p, int64_t stride, uint32_t row_major, uint32_t *out);                     \
    void ev_wmma_load_b_##shape##_##type(const void *p, int64_t stride, uint32_t row_major, uint32_t *out);
#define EV_WMMA_ACCUMULATOR(shape, type)                                                                                        \
    void ev_wmma_load_c_##shape##_##type(const void *p, int64_t stride, uint32_t row_major, uint32_t *out);                     \
    void ev_wmma_store_d_##shape##_##type(void *p, int64_t stride, uint32_t row_major, const uint32_t *in);
#define EV_WMMA_MMA(shape, types, accumulator) EV_MMA(ev_wmma_mma_##shape##_##types, accumulator)

EV_WMMA_SHAPES(EV_WMMA_LOAD, f16)            /* a[8] b[8] in every shape */
EV_WMMA_SHAPES(EV_WMMA_LOAD, bf16)           /* m16n16k16 a[4] b[4], m32n8k16 a[8] b[2], m8n32k16 a[2] b[8] */
EV_WMMA_LOAD(m16n16k8, tf32)                 /* a[4] b[4] */
EV_WMMA_SHAPES(EV_WMMA_LOAD, s8)             /* also u8: m16n16k16 a[2] b[2], m32n8k16 a[4] b[1], m8n32k16 a[1] b[4] */
EV_WMMA_SHAPES(EV_WMMA_ACCUMULATOR, f32)     /* c[8]; also for s32; m16n16k8 has the layout of m16n16k16 */
EV_WMMA_SHAPES(EV_WMMA_ACCUMULATOR, f16)     /* c[4] of f16x2 */
EV_WMMA_SHAPES(EV_WMMA_MMA, f32_f16, float)  /* c and d of f32; for c of f16 and d of f32 convert c first */
EV_WMMA_SHAPES(EV_WMMA_MMA, f16_f16, uint32_t)
EV_WMMA_SHAPES(EV_WMMA_MMA, f32_bf16, float)
EV_WMMA_MMA(m16n16k8, f32_tf32, float)
EV_WMMA_SHAPES(EV_WMMA_MMA, s32_s8, int32_t)
EV_WMMA_SHAPES(EV_WMMA_MMA, s32_u8, int32_t)
EV_WMMA_SHAPES(EV_WMMA_MMA, satfinite_s32_s8, int32_t)
EV_WMMA_SHAPES(EV_WMMA_MMA, satfinite_s32_u8, int32_t)

/* rows[8j + i]: host address of row i of matrix j, for j < count (1, 2 or 4); out[count][32]. b16 only. */
void ev_ldmatrix(const uint64_t *rows, uint32_t count, uint32_t trans, uint32_t *out);
void ev_stmatrix(const uint64_t *rows, uint32_t count, uint32_t trans, const uint32_t *in);

/* ---- half.c: f16 and bf16 with one rounding; NaN results are 0x7fff. Each also for pairs: ev_add_f16x2. --------------- */

#define EV_PAIRED(each, name) each(uint16_t, name) each(uint32_t, name##x2)
#define EV_ARITHMETIC(each, operator)                                                                                           \
    EV_PAIRED(each, ev_##operator##_f16) EV_PAIRED(each, ev_##operator##_sat_f16) EV_PAIRED(each, ev_##operator##_ftz_f16)      \
    EV_PAIRED(each, ev_##operator##_ftz_sat_f16) EV_PAIRED(each, ev_##operator##_bf16)
#define EV_EXTREME(operator) EV_PAIRED(EV_BINARY, ev_##operator##_f16) EV_PAIRED(EV_BINARY, ev_##operator##_bf16)

EV_ARITHMETIC(EV_BINARY, add)              /* ev_add_f16 ev_add_sat_f16 ev_add_ftz_f16 ev_add_ftz_sat_f16 ev_add_bf16, each and x2 */
EV_ARITHMETIC(EV_BINARY, sub)
EV_ARITHMETIC(EV_BINARY, mul)
EV_ARITHMETIC(EV_TERNARY, fma)
EV_PAIRED(EV_TERNARY, ev_fma_relu_f16)
EV_PAIRED(EV_TERNARY, ev_fma_ftz_relu_f16)
EV_PAIRED(EV_TERNARY, ev_fma_relu_bf16)
EV_EXTREME(min)                            /* ev_min_f16 ev_min_bf16, each and x2: a NaN loses, -0 < +0 */
EV_EXTREME(max)
EV_EXTREME(min_nan)                        /* a NaN wins */
EV_EXTREME(max_nan)

/* ev_cvt_<rn|rz|rm|rp>[_sat|_relu]_<f16|bf16>_<f32|f64>; <f16|bf16>x2_f32 takes (high, low); from integers of 64 bits, to which
   narrower ones are extended, without suffix. */
#define EV_PAIR_UP(name) void name(const float *high, const float *low, uint32_t *z);
#define EV_NARROWING(mode, type)                                                                                                \
    EV_CONVERSION(float, uint16_t, ev_cvt_##mode##_##type##_f32) EV_CONVERSION(double, uint16_t, ev_cvt_##mode##_##type##_f64)  \
    EV_PAIR_UP(ev_cvt_##mode##_##type##x2_f32)
#define EV_TO_NARROW(mode, type)                                                                                                \
    EV_NARROWING(mode, type) EV_NARROWING(mode##_sat, type) EV_NARROWING(mode##_relu, type)                                     \
    EV_CONVERSION(uint64_t, uint16_t, ev_cvt_##mode##_##type##_u64) EV_CONVERSION(int64_t, uint16_t, ev_cvt_##mode##_##type##_s64)
EV_TO_NARROW(rn, f16)
EV_TO_NARROW(rz, f16)
EV_TO_NARROW(rm, f16)
EV_TO_NARROW(rp, f16)
EV_TO_NARROW(rn, bf16)
EV_TO_NARROW(rz, bf16)
EV_TO_NARROW(rm, bf16)
EV_TO_NARROW(rp, bf16)
EV_CONVERSION(uint16_t, float, ev_cvt_f32_f16)         /* exact */
EV_CONVERSION(uint16_t, float, ev_cvt_f32_bf16)
EV_CONVERSION(float, uint32_t, ev_cvt_rna_tf32_f32)    /* ties away from zero; the low 13 bits are 0 */
EV_CONVERSION(float, uint32_t, ev_cvt_rn_tf32_f32)
EV_CONVERSION(float, uint32_t, ev_cvt_rz_tf32_f32)
EV_CONVERSION(float, uint32_t, ev_cvt_rn_relu_tf32_f32)
EV_CONVERSION(float, uint32_t, ev_cvt_rz_relu_tf32_f32)

/* ---- integer.c: ev_cvt_<rni|rzi|rmi|rpi>_<s8|u8|s16|u16|s32|u32|s64|u64>_<f16|bf16|f32|f64>, saturating. --------------- */

#define EV_TO_INTEGER(mode, from, type)                                                                                         \
    EV_CONVERSION(type, int8_t, ev_cvt_##mode##_s8_##from) EV_CONVERSION(type, uint8_t, ev_cvt_##mode##_u8_##from)              \
    EV_CONVERSION(type, int16_t, ev_cvt_##mode##_s16_##from) EV_CONVERSION(type, uint16_t, ev_cvt_##mode##_u16_##from)          \
    EV_CONVERSION(type, int32_t, ev_cvt_##mode##_s32_##from) EV_CONVERSION(type, uint32_t, ev_cvt_##mode##_u32_##from)          \
    EV_CONVERSION(type, int64_t, ev_cvt_##mode##_s64_##from) EV_CONVERSION(type, uint64_t, ev_cvt_##mode##_u64_##from)
#define EV_FROM_EACH(mode)                                                                                                      \
    EV_TO_INTEGER(mode, f16, uint16_t) EV_TO_INTEGER(mode, bf16, uint16_t) EV_TO_INTEGER(mode, f32, float) EV_TO_INTEGER(mode, f64, double)
EV_FROM_EACH(rni)
EV_FROM_EACH(rzi)
EV_FROM_EACH(rmi)
EV_FROM_EACH(rpi)

/* ---- fp8.c ----------------------------------------------------------------------------------------------------------- */

#define EV_FP8(type)                                                                                                            \
    void ev_cvt_rn_satfinite_##type##x2_f32(const float *high, const float *low, uint16_t *y);                                  \
    void ev_cvt_rn_satfinite_relu_##type##x2_f32(const float *high, const float *low, uint16_t *y);                             \
    EV_CONVERSION(uint32_t, uint16_t, ev_cvt_rn_satfinite_##type##x2_f16x2)                                                     \
    EV_CONVERSION(uint32_t, uint16_t, ev_cvt_rn_satfinite_relu_##type##x2_f16x2)                                                \
    EV_CONVERSION(uint16_t, uint32_t, ev_cvt_rn_f16x2_##type##x2)                                                               \
    EV_CONVERSION(uint16_t, uint32_t, ev_cvt_rn_relu_f16x2_##type##x2)
EV_FP8(e4m3)
EV_FP8(e5m2)

/* ---- atomic.c: lane by lane, ascending; old[lane] gets what was there. add min max and or xor exch for u32 s32 u64 s64. --- */

#define EV_ATOMIC(name, type) void ev_atomic_##name(const uint64_t *address, const type *value, uint32_t mask, type *old);
#define EV_ATOMIC_ALL(name, type)                                                                                               \
    EV_ATOMIC(add_##name, type) EV_ATOMIC(min_##name, type) EV_ATOMIC(max_##name, type) EV_ATOMIC(and_##name, type)             \
    EV_ATOMIC(or_##name, type) EV_ATOMIC(xor_##name, type) EV_ATOMIC(exch_##name, type)
#define EV_ATOMIC_CAS(name, type)                                                                                               \
    void ev_atomic_cas_##name(const uint64_t *address, const type *expected, const type *value, uint32_t mask, type *old);
EV_ATOMIC_ALL(u32, uint32_t)
EV_ATOMIC_ALL(s32, int32_t)
EV_ATOMIC_ALL(u64, uint64_t)
EV_ATOMIC_ALL(s64, int64_t)
EV_ATOMIC(exch_b16, uint16_t)
EV_ATOMIC(inc_u32, uint32_t)
EV_ATOMIC(dec_u32, uint32_t)
EV_ATOMIC(add_f32, uint32_t)    /* floats are passed as their bits */
EV_ATOMIC(add_f64, uint64_t)
EV_ATOMIC(add_f16, uint16_t)
EV_ATOMIC(add_bf16, uint16_t)
EV_ATOMIC(add_f16x2, uint32_t)  /* both halves at once, which is stronger than PTX requires */
EV_ATOMIC(add_bf16x2, uint32_t)
EV_ATOMIC_CAS(b16, uint16_t)
EV_ATOMIC_CAS(b32, uint32_t)
EV_ATOMIC_CAS(b64, uint64_t)

/* ---- memory.c: host addresses, any alignment. out[] of lanes out of the mask stays; of two that write, the higher lane wins. */

#define EV_BY_WIDTH(bits, type)                                                                                                 \
    void ev_gather_##bits(const uint64_t *address, uint32_t mask, type *out);                                                   \
    void ev_scatter_##bits(const uint64_t *address, uint32_t mask, const type *value);
EV_BY_WIDTH(8, uint8_t)
EV_BY_WIDTH(16, uint16_t)
EV_BY_WIDTH(32, uint32_t)
EV_BY_WIDTH(64, uint64_t)

/* cp.async of `bytes` (4, 8, 16) a lane to shared + shared_offset; what is beyond source_bytes is zero. */
void ev_copy_async(const uint32_t *shared_offset, uint8_t *shared, const uint64_t *global, const uint32_t *source_bytes, uint32_t bytes,
                   uint32_t mask);

/* ---- words.c: two or four words a lane, out[words][32] and in[words][32]; lanes out of the mask get zeros. ----------------- */

#define EV_WORDS(words)                                                                                                         \
    void ev_load_words_##words(const uint64_t *address, uint32_t mask, uint32_t *out);                                          \
    void ev_store_words_##words(const uint64_t *address, uint32_t mask, const uint32_t *in);
EV_WORDS(2)
EV_WORDS(4)

/* ---- exchange.c: lanes of the mask take part and get a result; out[] of the others stays. ------------------------------------ */

/* shfl.sync: lane is the operand b, c as in PTX; *inside gets the predicates p of the lanes of mask. */
#define EV_SHFL(mode)                                                                                                           \
    void ev_shfl_##mode##_b32(const uint32_t *x, const uint32_t *lane, const uint32_t *c, uint32_t mask, uint32_t *out, uint32_t *inside);
EV_SHFL(up)
EV_SHFL(down)
EV_SHFL(bfly)
EV_SHFL(idx)
void ev_match_any_b32(const uint32_t *x, uint32_t mask, uint32_t *out);
void ev_match_any_b64(const uint64_t *x, uint32_t mask, uint32_t *out);
uint32_t ev_match_all_b32(const uint32_t *x, uint32_t mask); /* mask, or 0: the predicate is "not 0" */
uint32_t ev_match_all_b64(const uint64_t *x, uint32_t mask);
uint32_t ev_redux_add_u32(const uint32_t *x, uint32_t mask); /* also for s32 */
uint32_t ev_redux_and_b32(const uint32_t *x, uint32_t mask);
uint32_t ev_redux_or_b32(const uint32_t *x, uint32_t mask);
uint32_t ev_redux_xor_b32(const uint32_t *x, uint32_t mask);
uint32_t ev_redux_min_u32(const uint32_t *x, uint32_t mask);
uint32_t ev_redux_max_u32(const uint32_t *x, uint32_t mask);
int32_t ev_redux_min_s32(const int32_t *x, uint32_t mask);
int32_t ev_redux_max_s32(const int32_t *x, uint32_t mask);
float ev_redux_min_f32(const float *x, uint32_t mask); /* a NaN loses */
float ev_redux_max_f32(const float *x, uint32_t mask);

/* ---- bits.c -------------------------------------------------------------------------------------------------------------- */

EV_TERNARY(uint32_t, ev_prmt)      /* no mode: c has four selectors */
EV_TERNARY(uint32_t, ev_prmt_f4e)
EV_TERNARY(uint32_t, ev_prmt_b4e)
EV_TERNARY(uint32_t, ev_prmt_rc8)
EV_TERNARY(uint32_t, ev_prmt_ecl)
EV_TERNARY(uint32_t, ev_prmt_ecr)
EV_TERNARY(uint32_t, ev_prmt_rc16)
EV_TERNARY(uint32_t, ev_bfe_u32)   /* a, position, length */
EV_TERNARY(uint32_t, ev_bfe_s32)
void ev_bfe_u64(const uint64_t *a, const uint32_t *position, const uint32_t *length, uint64_t *d);
void ev_bfe_s64(const uint64_t *a, const uint32_t *position, const uint32_t *length, uint64_t *d);
void ev_bfi_b32(const uint32_t *a, const uint32_t *b, const uint32_t *position, const uint32_t *length, uint32_t *d);
void ev_bfi_b64(const uint64_t *a, const uint64_t *b, const uint32_t *position, const uint32_t *length, uint64_t *d);
#define EV_BFIND(type, bits)                                                                                                    \
    EV_CONVERSION(type, uint32_t, ev_bfind_u##bits) EV_CONVERSION(type, uint32_t, ev_bfind_shiftamt_u##bits)                    \
    EV_CONVERSION(type, uint32_t, ev_bfind_s##bits) EV_CONVERSION(type, uint32_t, ev_bfind_shiftamt_s##bits)
EV_BFIND(uint32_t, 32)             /* 0xffffffff if there is none */
EV_BFIND(uint64_t, 64)             /* the result has 32 bits for 64-bit types, too */
#define EV_DOT(types) EV_TERNARY(uint32_t, ev_dp4a_##types) EV_TERNARY(uint32_t, ev_dp2a_lo_##types) EV_TERNARY(uint32_t, ev_dp2a_hi_##types)
EV_DOT(u32_u32)                    /* types of a and b, in this order */
EV_DOT(u32_s32)
EV_DOT(s32_u32)
EV_DOT(s32_s32)
void ev_lop3(const uint32_t *a, const uint32_t *b, const uint32_t *c, uint32_t table, uint32_t *d);
void ev_fns(const uint32_t *mask, const uint32_t *base, const int32_t *offset, uint32_t *d);

/* ---- call.c: ev_call_X for every __ev_X of front/include/ev/externals.h. -------------------------------------------------- */

EV_UNARY(float, ev_call_exp2f) /* not among them */
EV_UNARY(double, ev_call_exp2)
#define EV_CALL(name) EV_UNARY(float, ev_call_##name##f) EV_UNARY(double, ev_call_##name)
#define EV_CALL_2(name) EV_BINARY(float, ev_call_##name##f) EV_BINARY(double, ev_call_##name)
EV_CALL(sin) EV_CALL(cos) EV_CALL(tan) EV_CALL(sinpi) EV_CALL(cospi) EV_CALL(asin) EV_CALL(acos) EV_CALL(atan)
EV_CALL(sinh) EV_CALL(cosh) EV_CALL(tanh) EV_CALL(asinh) EV_CALL(acosh) EV_CALL(atanh)
EV_CALL(exp) EV_CALL(exp10) EV_CALL(expm1) EV_CALL(log) EV_CALL(log2) EV_CALL(log10) EV_CALL(log1p) EV_CALL(cbrt) EV_CALL(rcbrt)
EV_CALL(erf) EV_CALL(erfc) EV_CALL(erfcx) EV_CALL(erfinv) EV_CALL(erfcinv) EV_CALL(normcdf) EV_CALL(normcdfinv)
EV_CALL(lgamma) EV_CALL(tgamma) EV_CALL(j0) EV_CALL(j1) EV_CALL(y0) EV_CALL(y1) EV_CALL(cyl_bessel_i0) EV_CALL(cyl_bessel_i1)
EV_CALL_2(atan2) EV_CALL_2(pow) EV_CALL_2(fmod) EV_CALL_2(remainder) EV_CALL_2(hypot) EV_CALL_2(rhypot) EV_CALL_2(nextafter)
void ev_call_ldexpf(const float *x, const int32_t *exponent, float *y);
void ev_call_ldexp(const double *x, const int32_t *exponent, double *y);

/* ---- directed.c: ev_<add|mul|div>_<rz|rm|rp>_<f32|f64>, fma, sqrt and rcp alike, and conversions. To the nearest LLVM knows. -- */

#define EV_DIRECTED(mode)                                                                                                       \
    EV_BINARY(float, ev_add_##mode##_f32) EV_BINARY(float, ev_sub_##mode##_f32) EV_BINARY(float, ev_mul_##mode##_f32)           \
    EV_BINARY(float, ev_div_##mode##_f32) EV_TERNARY(float, ev_fma_##mode##_f32)                                                \
    EV_UNARY(float, ev_sqrt_##mode##_f32) EV_UNARY(float, ev_rcp_##mode##_f32)                                                  \
    EV_BINARY(double, ev_add_##mode##_f64) EV_BINARY(double, ev_sub_##mode##_f64) EV_BINARY(double, ev_mul_##mode##_f64)        \
    EV_BINARY(double, ev_div_##mode##_f64) EV_TERNARY(double, ev_fma_##mode##_f64)                                              \
    EV_UNARY(double, ev_sqrt_##mode##_f64) EV_UNARY(double, ev_rcp_##mode##_f64)                                                \
    EV_CONVERSION(double, float, ev_cvt_##mode##_f32_f64)                                                                       \
    EV_CONVERSION(int64_t, float, ev_cvt_##mode##_f32_s64) EV_CONVERSION(uint64_t, float, ev_cvt_##mode##_f32_u64)              \
    EV_CONVERSION(int64_t, double, ev_cvt_##mode##_f64_s64) EV_CONVERSION(uint64_t, double, ev_cvt_##mode##_f64_u64)
EV_DIRECTED(rz)
EV_DIRECTED(rm)
EV_DIRECTED(rp)

/* ---- compiler.c: what LLVM itself calls on hosts without F16C. ------------------------------------------------------------ */

float __extendhfsf2(_Float16 x);
_Float16 __truncsfhf2(float x);
_Float16 __truncdfhf2(double x);
__bf16 __truncsfbf2(float x);
__bf16 __truncdfbf2(double x);

#endif
