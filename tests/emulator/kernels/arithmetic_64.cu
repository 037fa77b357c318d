// 64-bit integers: carries, high halves of products, shifts across the words, a hash, 128-bit sums by hand.
__device__ __forceinline__ unsigned long long mix(unsigned long long h) {
    h ^= h >> 33;
    h *= 0xff51afd7ed558ccdULL;
    h ^= h >> 33;
    h *= 0xc4ceb9fe1a85ec53ULL;
    h ^= h >> 33;
    return h;
}

__global__ void arithmetic_64(const unsigned long long* a, const unsigned long long* b, unsigned long long* out, long long* sout, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned long long x = a[i], y = b[i];
    long long sx = (long long)x, sy = (long long)y;
    unsigned int k = (unsigned int)(y & 63);

    unsigned long long* o = out + 10 * i;
    o[0] = x + y;
    o[1] = x * y;
    o[2] = __umul64hi(x, y);
    o[3] = mix(x);
    o[4] = (x << k) | (x >> ((64 - k) & 63));
    o[5] = x / (y | 1);
    o[6] = x % ((y >> 40) | 1);
    unsigned long long low = x + y;
    o[7] = low < x ? 1 : 0;
    o[8] = min(x, y) ^ max(x, y);
    o[9] = (unsigned long long)(unsigned int)x * (unsigned int)y + (y >> 32);

    long long* s = sout + 6 * i;
    s[0] = __mul64hi(sx, sy);
    s[1] = sx >> k;
    s[2] = sx / (sy | 1);
    s[3] = sx % ((sy >> 30) | 1);
    s[4] = (long long)(int)x * (int)y;
    s[5] = llabs(sx >> 3) - (sx < sy ? 1 : 2);
}
