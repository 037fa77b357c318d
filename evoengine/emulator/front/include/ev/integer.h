// Integer intrinsics and bits seen as another type.
#pragma once
EV int __clz(int x) { return x ? __builtin_clz(x) : 32; }
EV int __clzll(long long x) { return x ? __builtin_clzll(x) : 64; }
EV int __popc(unsigned int x) { return __builtin_popcount(x); }
EV int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
EV int __ffs(int x) { return __builtin_ffs(x); }
EV int __ffsll(long long x) { return __builtin_ffsll(x); }
EV unsigned int __brev(unsigned int x) { return __builtin_bitreverse32(x); }
EV unsigned long long __brevll(unsigned long long x) { return __builtin_bitreverse64(x); }
EV unsigned int __byte_perm(unsigned int a, unsigned int b, unsigned int s) { return __nvvm_prmt(a, b, s); }
EV int __mulhi(int a, int b) { return (long long)a * b >> 32; }
EV unsigned int __umulhi(unsigned int a, unsigned int b) { return (unsigned long long)a * b >> 32; }
EV long long __mul64hi(long long a, long long b) { return (__int128)a * b >> 64; }
EV unsigned long long __umul64hi(unsigned long long a, unsigned long long b) { return (unsigned __int128)a * b >> 64; }
EV int __mul24(int a, int b) { return ((a << 8) >> 8) * ((b << 8) >> 8); }
EV unsigned int __umul24(unsigned int a, unsigned int b) { return (a & 0xffffff) * (b & 0xffffff); }
EV unsigned int __sad(int a, int b, unsigned int c) { return (a > b ? (unsigned)a - (unsigned)b : (unsigned)b - (unsigned)a) + c; }
EV unsigned int __usad(unsigned int a, unsigned int b, unsigned int c) { return (a > b ? a - b : b - a) + c; }
EV int __hadd(int a, int b) { return ((long long)a + b) >> 1; }
EV unsigned int __uhadd(unsigned int a, unsigned int b) { return ((unsigned long long)a + b) >> 1; }
EV int __rhadd(int a, int b) { return ((long long)a + b + 1) >> 1; }
EV unsigned int __urhadd(unsigned int a, unsigned int b) { return ((unsigned long long)a + b + 1) >> 1; }
EV unsigned int __funnelshift_l(unsigned int lo, unsigned int hi, unsigned int s) { return __builtin_elementwise_fshl(hi, lo, s); }
EV unsigned int __funnelshift_r(unsigned int lo, unsigned int hi, unsigned int s) { return __builtin_elementwise_fshr(hi, lo, s); }
EV unsigned int __funnelshift_lc(unsigned int lo, unsigned int hi, unsigned int s) {
    unsigned int d;
    asm("shf.l.clamp.b32 %0, %1, %2, %3;" : "=r"(d) : "r"(lo), "r"(hi), "r"(s));
    return d;
}
EV unsigned int __funnelshift_rc(unsigned int lo, unsigned int hi, unsigned int s) {
    unsigned int d;
    asm("shf.r.clamp.b32 %0, %1, %2, %3;" : "=r"(d) : "r"(lo), "r"(hi), "r"(s));
    return d;
}
// The place of the offset-th bit that is set in mask from base upwards, downwards if offset < 0; all ones where there is none.
// CUDA gives fns.b32, which the hardware has no instruction for either.
EV unsigned int __fns(unsigned int mask, unsigned int base, int offset) {
    if (offset == 0) return mask >> (base & 31) & 1 ? base : ~0u;
    const bool down = offset < 0;
    unsigned int rest = down ? __brev(mask) : mask;
    rest &= ~0u << ((down ? 31 - base : base) & 31);
    for (int i = down ? -offset : offset; i > 1 && rest; --i) rest &= rest - 1;
    const unsigned int place = (unsigned int)__ffs((int)rest) - 1;  // all ones where no bit is left
    return down && rest ? 31 - place : place;
}
#define EV_DOT(NAME, OP, R, A, B, C)                                                     \
    EV R NAME(A a, B b, R c) {                                                           \
        R d;                                                                             \
        asm(OP " %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c));                   \
        return d;                                                                        \
    }
EV_DOT(__dp4a, "dp4a.s32.s32", int, int, int, int)
EV_DOT(__dp4a, "dp4a.u32.u32", unsigned int, unsigned int, unsigned int, unsigned int)
EV_DOT(__dp2a_lo, "dp2a.lo.s32.s32", int, int, int, int)
EV_DOT(__dp2a_lo, "dp2a.lo.u32.u32", unsigned int, unsigned int, unsigned int, unsigned int)
EV_DOT(__dp2a_hi, "dp2a.hi.s32.s32", int, int, int, int)
EV_DOT(__dp2a_hi, "dp2a.hi.u32.u32", unsigned int, unsigned int, unsigned int, unsigned int)
#undef EV_DOT
EV int __dp4a(char4 a, char4 b, int c) { return __dp4a(__builtin_bit_cast(int, a), __builtin_bit_cast(int, b), c); }
EV unsigned int __dp4a(uchar4 a, uchar4 b, unsigned int c) {
    return __dp4a(__builtin_bit_cast(unsigned int, a), __builtin_bit_cast(unsigned int, b), c);
}

EV int __float_as_int(float x) { return __builtin_bit_cast(int, x); }
EV unsigned int __float_as_uint(float x) { return __builtin_bit_cast(unsigned int, x); }
EV float __int_as_float(int x) { return __builtin_bit_cast(float, x); }
EV float __uint_as_float(unsigned int x) { return __builtin_bit_cast(float, x); }
EV long long __double_as_longlong(double x) { return __builtin_bit_cast(long long, x); }
EV double __longlong_as_double(long long x) { return __builtin_bit_cast(double, x); }
EV int __double2hiint(double x) { return __double_as_longlong(x) >> 32; }
EV int __double2loint(double x) { return (int)__double_as_longlong(x); }
EV double __hiloint2double(int hi, int lo) {
    return __longlong_as_double((long long)((unsigned long long)(unsigned int)hi << 32 | (unsigned int)lo));
}
