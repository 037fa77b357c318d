// What one SM needs for single instructions, in clocks: chains, each step of which needs the one before, and rates, where
// eight independent chains of a thread keep a pipe full. Every kernel writes the clocks of its block's first thread.
#define CHAIN(NAME, TYPE, INIT, STEP) \
extern "C" __global__ void __launch_bounds__(1024) chain_##NAME(long long* clocks, unsigned* sink) { \
    __shared__ unsigned next[1024]; \
    next[threadIdx.x] = threadIdx.x * 4u; \
    const unsigned base = (unsigned)__cvta_generic_to_shared(next); (void)base; \
    TYPE x = INIT; \
    for (int warm = 0; warm < 2; ++warm) { \
        __syncthreads(); const long long begin = clock64(); \
        _Pragma("unroll") for (int i = 0; i < 128; ++i) { STEP; } \
        const long long end = clock64(); if (threadIdx.x == 0) clocks[blockIdx.x] = end - begin; } \
    if (x == (TYPE)123456) sink[0] = 1; }

CHAIN(fma, float, threadIdx.x, asm volatile("fma.rn.f32 %0, %0, %0, %0;" : "+f"(x)))
CHAIN(imad, unsigned, threadIdx.x, asm volatile("mad.lo.u32 %0, %0, %0, %0;" : "+r"(x)))
CHAIN(ex2, float, threadIdx.x, asm volatile("ex2.approx.ftz.f32 %0, %0;" : "+f"(x)))
CHAIN(shuffle, unsigned, threadIdx.x, asm volatile("shfl.sync.bfly.b32 %0, %0, 1, 31, 0xffffffff;" : "+r"(x)))
CHAIN(shared, unsigned, threadIdx.x * 4u, asm volatile("{.reg .u32 a; add.u32 a, %0, %1; ld.shared.u32 %0, [a];}" : "+r"(x) : "r"(base)))
CHAIN(barrier, unsigned, threadIdx.x, asm volatile("bar.sync 0;"))
CHAIN(half, float, threadIdx.x, asm volatile("{.reg .b16 h; cvt.rn.f16.f32 h, %0; cvt.f32.f16 %0, h;}" : "+f"(x)))

#define MMA "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%4,%4,%4}, {%4,%4}, {%0,%1,%2,%3};"
#define MMA_OF(c, a) asm volatile(MMA : "+f"((c)[0]), "+f"((c)[1]), "+f"((c)[2]), "+f"((c)[3]) : "r"(a))

extern "C" __global__ void __launch_bounds__(1024) chain_mma(long long* clocks, unsigned* sink) {
    float c[4] = {};
    for (int warm = 0; warm < 2; ++warm) {
        __syncthreads();
        const long long begin = clock64();
#pragma unroll
        for (int i = 0; i < 128; ++i) MMA_OF(c, threadIdx.x);
        const long long end = clock64();
        if (threadIdx.x == 0) clocks[blockIdx.x] = end - begin;
    }
    if (c[0] == 123456.0f) sink[0] = 1;
}

// A ring of pointers in global memory; past the L1 cache where `bypass`.
extern "C" __global__ void __launch_bounds__(1024) chain_global(long long* clocks, unsigned* sink, unsigned long long* ring, int bypass) {
    unsigned long long p = (unsigned long long)(ring + threadIdx.x % 32);
    for (int warm = 0; warm < 2; ++warm) {
        const long long begin = clock64();
#pragma unroll
        for (int i = 0; i < 128; ++i) {
            if (bypass) asm volatile("ld.global.cg.u64 %0, [%0];" : "+l"(p));
            else asm volatile("ld.global.ca.u64 %0, [%0];" : "+l"(p));
        }
        const long long end = clock64();
        if (threadIdx.x == 0) clocks[blockIdx.x] = end - begin;
    }
    if (p == 123456) sink[0] = 1;
}

#define RATE(NAME, TYPE, STEP) \
extern "C" __global__ void __launch_bounds__(1024) rate_##NAME(long long* clocks, unsigned* sink) { \
    TYPE x[8]; for (int j = 0; j < 8; ++j) x[j] = (TYPE)(threadIdx.x + j); \
    __syncthreads(); const long long begin = clock64(); \
    _Pragma("unroll 1") for (int i = 0; i < 16; ++i) { \
        _Pragma("unroll") for (int j = 0; j < 64; ++j) { STEP(x[j % 8]); } } \
    __syncthreads(); const long long end = clock64(); if (threadIdx.x == 0) clocks[blockIdx.x] = end - begin; \
    TYPE sum = 0; for (int j = 0; j < 8; ++j) sum += x[j]; if (sum == (TYPE)123456) sink[0] = 1; }

#define FMA(value) asm volatile("fma.rn.f32 %0, %0, %0, %0;" : "+f"(value))
#define IMAD(value) asm volatile("mad.lo.u32 %0, %0, %0, %0;" : "+r"(value))
#define ALU(value) asm volatile("lop3.b32 %0, %0, %1, %2, 0x6A;" : "+r"(value) : "r"(threadIdx.x), "r"(blockDim.x))
#define HALF2(value) asm volatile("fma.rn.f16x2 %0, %0, %0, %0;" : "+r"(value))
#define EX2(value) asm volatile("ex2.approx.ftz.f32 %0, %0;" : "+f"(value))
#define SHUFFLE(value) asm volatile("shfl.sync.bfly.b32 %0, %0, 1, 31, 0xffffffff;" : "+r"(value))
#define PACK(value) asm volatile("cvt.rn.f16x2.f32 %0, %1, %1;" : "+r"(value) : "f"(1.0f))
#define UNPACK(value) asm volatile("{.reg .b16 l, h; mov.b32 {l, h}, %1; cvt.f32.f16 %0, l;}" : "+f"(value) : "r"(threadIdx.x))
#define TO_E4M3(value) asm volatile("{.reg .b16 p; cvt.rn.satfinite.e4m3x2.f32 p, %1, %1; cvt.u32.u16 %0, p;}" : "+r"(value) : "f"(1.0f))
#define FROM_E4M3(value) asm volatile("{.reg .b16 p; mov.b32 {p, _}, %0; cvt.rn.f16x2.e4m3x2 %0, p;}" : "+r"(value))
#define INT_TO_FLOAT(value) asm volatile("{.reg .f32 f; cvt.rn.f32.s32 f, %0; mov.b32 %0, f;}" : "+r"(value))
RATE(fma, float, FMA)
RATE(imad, unsigned, IMAD)
RATE(alu, unsigned, ALU)
RATE(half2, unsigned, HALF2)
RATE(ex2, float, EX2)
RATE(shuffle, unsigned, SHUFFLE)
RATE(pack_half, unsigned, PACK)
RATE(unpack_half, float, UNPACK)
RATE(to_e4m3, unsigned, TO_E4M3)
RATE(from_e4m3, unsigned, FROM_E4M3)
RATE(int_to_float, unsigned, INT_TO_FLOAT)

extern "C" __global__ void __launch_bounds__(1024) rate_mma(long long* clocks, unsigned* sink) {
    float c[8][4] = {};
    __syncthreads();
    const long long begin = clock64();
#pragma unroll 1
    for (int i = 0; i < 16; ++i) {
#pragma unroll
        for (int j = 0; j < 64; ++j) MMA_OF(c[j % 8], threadIdx.x);
    }
    __syncthreads();
    const long long end = clock64();
    if (threadIdx.x == 0) clocks[blockIdx.x] = end - begin;
    float sum = 0;
    for (int j = 0; j < 8; ++j) sum += c[j][0];
    if (sum == 123456.0f) sink[0] = 1;
}

// Shared memory: lane l touches what begins at byte l / divide % modulo * stride.
#define SHARED(NAME, STEP) \
extern "C" __global__ void __launch_bounds__(1024) shared_##NAME(long long* clocks, unsigned* sink, int divide, int modulo, int stride) { \
    __shared__ __align__(128) unsigned room[8192]; \
    for (int i = threadIdx.x; i < 8192; i += blockDim.x) room[i] = 0; \
    const unsigned lane = threadIdx.x % 32; \
    const unsigned at = (unsigned)__cvta_generic_to_shared(room) + lane / divide % modulo * stride; \
    unsigned a = 0, b = 0, c = 0, d = 0; \
    __syncthreads(); const long long begin = clock64(); \
    _Pragma("unroll 1") for (int i = 0; i < 16; ++i) { \
        _Pragma("unroll") for (int j = 0; j < 64; ++j) { STEP; } } \
    __syncthreads(); const long long end = clock64(); if (threadIdx.x == 0) clocks[blockIdx.x] = end - begin; \
    if (a + b + c + d == 123456) sink[0] = 1; }

SHARED(load4, asm volatile("ld.volatile.shared.u32 %0, [%1];" : "=r"(a) : "r"(at)))
SHARED(load8, asm volatile("ld.volatile.shared.v2.u32 {%0, %1}, [%2];" : "=r"(a), "=r"(b) : "r"(at)))
SHARED(load16, asm volatile("ld.volatile.shared.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(a), "=r"(b), "=r"(c), "=r"(d) : "r"(at)))
SHARED(store4, asm volatile("st.volatile.shared.u32 [%0], %1;" : : "r"(at), "r"(a)))
SHARED(store16, asm volatile("st.volatile.shared.v4.u32 [%0], {%1, %1, %1, %1};" : : "r"(at), "r"(a)))
// ptxas would load once what it need not load again: so each load is from another place, and its result is used.
SHARED(matrix, unsigned e; asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
    : "=r"(e), "=r"(b), "=r"(c), "=r"(d) : "r"(at + 16 * j)); a ^= e)

extern "C" __global__ void empty() {}

// Every thread reads 16 bytes at a time; the whole buffer once.
extern "C" __global__ void stream_read(const uint4* from, unsigned long long count, unsigned* sink) {
    uint4 sum = make_uint4(0, 0, 0, 0);
    const unsigned long long step = (unsigned long long)gridDim.x * blockDim.x;
#pragma unroll 8
    for (unsigned long long i = blockIdx.x * (unsigned long long)blockDim.x + threadIdx.x; i < count; i += step) {
        uint4 v;
        asm volatile("ld.global.cg.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "l"(from + i));
        sum.x ^= v.x; sum.y ^= v.y; sum.z ^= v.z; sum.w ^= v.w;
    }
    if ((sum.x ^ sum.y ^ sum.z ^ sum.w) == 123456) sink[0] = 1;
}

extern "C" __global__ void stream_write(uint4* to, unsigned long long count) {
    const unsigned long long step = (unsigned long long)gridDim.x * blockDim.x;
#pragma unroll 8
    for (unsigned long long i = blockIdx.x * (unsigned long long)blockDim.x + threadIdx.x; i < count; i += step)
        to[i] = make_uint4(1, 2, 3, 4);
}
