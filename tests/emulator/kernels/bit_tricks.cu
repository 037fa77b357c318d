// Reversal, counts, searches, funnel shifts, byte permutations and bit fields.
__device__ __forceinline__ unsigned int bfe_u32(unsigned int x, unsigned int start, unsigned int length) {
    unsigned int r;
    asm("bfe.u32 %0, %1, %2, %3;" : "=r"(r) : "r"(x), "r"(start), "r"(length));
    return r;
}

__device__ __forceinline__ int bfe_s32(int x, unsigned int start, unsigned int length) {
    int r;
    asm("bfe.s32 %0, %1, %2, %3;" : "=r"(r) : "r"(x), "r"(start), "r"(length));
    return r;
}

__device__ __forceinline__ unsigned int bfi_b32(unsigned int from, unsigned int to, unsigned int start, unsigned int length) {
    unsigned int r;
    asm("bfi.b32 %0, %1, %2, %3, %4;" : "=r"(r) : "r"(from), "r"(to), "r"(start), "r"(length));
    return r;
}

extern "C" __global__ void bit_tricks(const unsigned int* a, const unsigned int* b, unsigned int* out, unsigned long long* wide, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned int x = a[i], y = b[i];
    unsigned long long w = ((unsigned long long)x << 32) | y;
    unsigned int k = 0;
#define PUT(value) out[16 * i + k++] = (value)
    PUT(__brev(x));
    PUT(__clz(x));
    PUT(__ffs(x));
    PUT(__popc(x));
    PUT(__clzll(w));
    PUT(__ffsll(w));
    PUT(__popcll(w));
    PUT(__funnelshift_l(x, y, i));
    PUT(__funnelshift_r(x, y, i));
    PUT(__funnelshift_lc(x, y, i));
    PUT(__byte_perm(x, y, 0x5140));
    PUT(__byte_perm(x, y, y & 0x7777));
    PUT(bfe_u32(x, i & 31, y & 31));
    PUT((unsigned int)bfe_s32(x, i & 31, y & 31));
    PUT(bfi_b32(x, y, i & 31, (x >> 5) & 31));
    PUT(__brev(x & -x) + __sad(x, y, 5u) + __usad(x, y, 9u) + __uhadd(x, y) + __rhadd(x, y));
    wide[i] = __brevll(w);
}
