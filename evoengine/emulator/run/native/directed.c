/* Arithmetic that rounds towards zero, down or up: .rz, .rm, .rp of 9.7.3, and conversions.

   Changes the host's rounding mode around a plain operation. Results pass through memory that an asm claims to modify, because
   otherwise the compiler may move arithmetic across the mode change, which it does not track. */
#include "lanes.h"

#if defined(__x86_64__)
/* MXCSR bits 13-14: 00 nearest, 01 down, 10 up, 11 to zero (Intel SDM 10.2.3.1). */
typedef enum { RM = 1, RP = 2, RZ = 3 } Mode;
typedef uint32_t Saved;

EV_INLINE Saved enter(Mode mode) {
    Saved saved;
    __asm__ volatile("stmxcsr %0" : "=m"(saved));
    uint32_t wanted = (saved & ~0x6000u) | (uint32_t)mode << 13;
    __asm__ volatile("ldmxcsr %0" : : "m"(wanted) : "memory");
    return saved;
}

EV_INLINE void leave(Saved saved) {
    __asm__ volatile("ldmxcsr %0" : : "m"(saved) : "memory");
}
#elif defined(__aarch64__)
/* FPCR bits 22-23: 00 nearest, 01 up, 10 down, 11 to zero (Arm ARM, FPCR). */
typedef enum { RP = 1, RM = 2, RZ = 3 } Mode;
typedef uint64_t Saved;

EV_INLINE Saved enter(Mode mode) {
    Saved saved;
    __asm__ volatile("mrs %0, fpcr" : "=r"(saved));
    uint64_t wanted = (saved & ~0xc00000ull) | (uint64_t)mode << 22;
    __asm__ volatile("msr fpcr, %0" : : "r"(wanted) : "memory");
    return saved;
}

EV_INLINE void leave(Saved saved) {
    __asm__ volatile("msr fpcr, %0" : : "r"(saved) : "memory");
}
#else
#error "directed.c: the rounding mode of this host is not known"
#endif

/* u64 to double. The usual code is a difference, which is -0 for 0 when rounding down. Behind an asm, as LLVM else sees that the
   halves are not negative and takes that code again. */
EV_INLINE double by_halves(uint64_t x) {
    int64_t high = (int64_t)(x >> 32), low = (int64_t)(x & 0xffffffffu);
    __asm__("" : "+r"(high), "+r"(low));
    return (double)high * 0x1p32 + (double)low;
}

#define DIRECTED(name, MODE, to, signature, expression)                                                                                 \
    void ev_##name signature {                                                                                                          \
        Saved saved = enter(MODE);                                                                                                      \
        for (int i = 0; i < LANES; ++i) {                                                                                               \
            to result = (to)(expression);                                                                                               \
            __asm__ volatile("" : "+m"(result) : : "memory");                                                                           \
            out[i] = result;                                                                                                            \
        }                                                                                                                               \
        leave(saved);                                                                                                                   \
    }
#define FLOATING(mode, MODE, type, suffix)                                                                                              \
    DIRECTED(add_##mode##_##suffix, MODE, type, (const type *x, const type *y, type *out), x[i] + y[i])                                 \
    DIRECTED(sub_##mode##_##suffix, MODE, type, (const type *x, const type *y, type *out), x[i] - y[i])                                 \
    DIRECTED(mul_##mode##_##suffix, MODE, type, (const type *x, const type *y, type *out), x[i] * y[i])                                 \
    DIRECTED(div_##mode##_##suffix, MODE, type, (const type *x, const type *y, type *out), x[i] / y[i])                                 \
    DIRECTED(sqrt_##mode##_##suffix, MODE, type, (const type *x, type *out), __builtin_elementwise_sqrt(x[i]))                          \
    DIRECTED(rcp_##mode##_##suffix, MODE, type, (const type *x, type *out), (type)1 / x[i])                                             \
    DIRECTED(fma_##mode##_##suffix, MODE, type, (const type *x, const type *y, const type *z, type *out),                               \
             __builtin_elementwise_fma(x[i], y[i], z[i]))
#define CONVERTING(mode, MODE, from, source, to, target, expression)                                                                    \
    DIRECTED(cvt_##mode##_##target##_##source, MODE, to, (const from *x, to *out), expression)
#define MODES(mode, MODE)                                                                                                               \
    FLOATING(mode, MODE, float, f32)                                                                                                    \
    FLOATING(mode, MODE, double, f64)                                                                                                   \
    CONVERTING(mode, MODE, double, f64, float, f32, x[i])                                                                               \
    CONVERTING(mode, MODE, int64_t, s64, float, f32, x[i])                                                                              \
    CONVERTING(mode, MODE, uint64_t, u64, float, f32, x[i])                                                                             \
    CONVERTING(mode, MODE, int64_t, s64, double, f64, x[i])                                                                             \
    CONVERTING(mode, MODE, uint64_t, u64, double, f64, by_halves(x[i]))
MODES(rz, RZ)
MODES(rm, RM)
MODES(rp, RP)
