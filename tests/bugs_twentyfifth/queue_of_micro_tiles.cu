/* evoengine
name: queue_of_micro_tiles
precision: fp16
summary: persistent blocks with a queue of row tiles, register micro tiles in single precision and K transposed on its way into shared memory
tunables:
  PER_SM: [2, 1]             # resident blocks of a multiprocessor
  PAD: [4, 8]                # floats between the rows of a transposed tile
let:
  NT: ceil_div(S, 64)
  ITEMS: NT * B * H
  SMEM: 4*2*D*(64 + PAD) + 4*64*(64 + PAD) + 2*64*D
require: [SMEM <= MAX_SHARED_BYTES]
scratch:
  head_of_queue: {dtype: int32, shape: [1], init: 0}
launches:
  - kernel: fa_simt<D, causal>
    grid: ["min(ITEMS, PER_SM*SM_COUNT)"]
    block: [16, 16]
    shared: SMEM
    args: [q, k, v, out, head_of_queue, S, NT, ITEMS, scale]
*/
// 256 threads as a 16x16 grid hold a 64x64 tile of scores, 4x4 a thread. Q and K lie in shared memory by
// columns, so that a step of the inner product is two float4 loads for sixteen multiply-adds.
#include <cuda_fp16.h>

#define LDT (64 + PAD)
#define NEG_INF __int_as_float(0xff800000)

struct Item { int bh, tile; };
// Items are numbered such that the last row tiles of all heads come first: under a causal mask they take longest.
__device__ __forceinline__ Item decode(int w, int nt, int items) {
    int heads = items / nt;
    return {w % heads, nt - 1 - w / heads};
}

// 64 rows of D halves, from row r0 on, as floats at dst[column * LDT + row]; zeros beyond row `end`.
template <int D> __device__ __forceinline__ void load_t(float* dst, const __half* src, int r0, int end, float mul) {
    for (int i = threadIdx.y * 16 + threadIdx.x; i < 64 * D / 8; i += 256) {
        int r = i % 64, c = i / 64 * 8;         // neighbours take different rows, and so different banks
        uint4 raw = make_uint4(0, 0, 0, 0);
        if (r0 + r < end) raw = *reinterpret_cast<const uint4*>(src + size_t(r0 + r) * D + c);
        const __half2* h = reinterpret_cast<const __half2*>(&raw);
        for (int e = 0; e < 4; ++e) {
            float2 f = __half22float2(h[e]);
            dst[(c + 2 * e) * LDT + r] = f.x * mul;
            dst[(c + 2 * e + 1) * LDT + r] = f.y * mul;
        }
    }
}

template <int D> __device__ __forceinline__ void load_v(__half* dst, const __half* src, int r0, int end) {
    for (int i = threadIdx.y * 16 + threadIdx.x; i < 64 * D / 8; i += 256) {
        int r = i / (D / 8);
        uint4 raw = make_uint4(0, 0, 0, 0);
        if (r0 + r < end) raw = *reinterpret_cast<const uint4*>(src + size_t(r0) * D + i * 8);
        *reinterpret_cast<uint4*>(dst + i * 8) = raw;
    }
}

// Over the sixteen threads of a row, which are one half of a warp.
template <class Op> __device__ __forceinline__ float row_reduce(float x, Op op) {
    for (int o = 8; o; o >>= 1) x = op(x, __shfl_xor_sync(0xffffffffu, x, o, 16));
    return x;
}

template <int D, bool CAUSAL>
__global__ void __launch_bounds__(256)
fa_simt(const __half* __restrict__ q, const __half* __restrict__ k, const __half* __restrict__ v, __half* __restrict__ out,
        int* queue, int S, int nt, int items, float scale) {
    extern __shared__ __align__(16) float sm[];
    float *qt = sm, *kt = qt + D * LDT;         // [D][LDT]
    float* pt = kt + D * LDT;                   // [64 keys][LDT], weights by key
    __half* vs = reinterpret_cast<__half*>(pt + 64 * LDT);      // [64][D]
    __shared__ int next;
    const int tx = threadIdx.x, ty = threadIdx.y;
    constexpr int NC = D / 64;                  // groups of four output columns a thread owns

    while (true) {
        if (tx == 0 && ty == 0) next = atomicAdd(queue, 1);     // all read the last one before a barrier of its tiles
        __syncthreads();
        const int w = next;
        if (w >= items) break;
        const Item it = decode(w, nt, items);
        const size_t base = size_t(it.bh) * S * D;
        const int m0 = it.tile * 64, nk = CAUSAL ? it.tile + 1 : nt;
        load_t<D>(qt, q + base, m0, S, scale * 1.44269504f);

        float o[4][NC * 4] = {}, mx[4], l[4] = {};
        for (int i = 0; i < 4; ++i) mx[i] = NEG_INF;

        for (int j = 0; j < nk; ++j) {
            const int n0 = j * 64;
            __syncthreads();                    // the tile before is no longer read
            load_t<D>(kt, k + base, n0, S, 1.0f);
            load_v<D>(vs, v + base, n0, S);
            __syncthreads();
            float s[4][4] = {};
            for (int d = 0; d < D; ++d) {
                const float4 a = *reinterpret_cast<const float4*>(qt + d * LDT + ty * 4);
                const float4 b = *reinterpret_cast<const float4*>(kt + d * LDT + tx * 4);
                const float av[4] = {a.x, a.y, a.z, a.w}, bv[4] = {b.x, b.y, b.z, b.w};
                for (int i = 0; i < 4; ++i)
                    for (int c = 0; c < 4; ++c) s[i][c] = fmaf(av[i], bv[c], s[i][c]);
            }
            if (n0 + 64 > S || (CAUSAL && j == it.tile))
                for (int i = 0; i < 4; ++i)
                    for (int c = 0; c < 4; ++c) {
                        const int key = n0 + tx * 4 + c, row = m0 + ty * 4 + i;
                        if (key >= S || (CAUSAL && key > row)) s[i][c] = NEG_INF;
                    }

            for (int i = 0; i < 4; ++i) {
                float t = fmaxf(fmaxf(s[i][0], s[i][1]), fmaxf(s[i][2], s[i][3]));
                t = row_reduce(t, [](float x, float y) { return fmaxf(x, y); });
                t = fmaxf(t, mx[i]);
                const float f = exp2f(mx[i] - t);
                float p = 0.0f;
                for (int c = 0; c < 4; ++c) p += s[i][c] = exp2f(s[i][c] - t);
                l[i] = l[i] * f + row_reduce(p, [](float x, float y) { return x + y; });
                mx[i] = t;
                for (int c = 0; c < NC * 4; ++c) o[i][c] *= f;
            }
            for (int c = 0; c < 4; ++c)
                *reinterpret_cast<float4*>(pt + (tx * 4 + c) * LDT + ty * 4) = make_float4(s[0][c], s[1][c], s[2][c], s[3][c]);
            __syncwarp();                       // a row of weights is written and read by one half of a warp

            for (int n = 0; n < 64; ++n) {
                const float4 a = *reinterpret_cast<const float4*>(pt + n * LDT + ty * 4);
                const float av[4] = {a.x, a.y, a.z, a.w};
                for (int g = 0; g < NC; ++g) {
                    const __half2* h = reinterpret_cast<const __half2*>(vs + n * D + g * 64 + tx * 4);
                    const float2 lo = __half22float2(h[0]), hi = __half22float2(h[1]);
                    for (int i = 0; i < 4; ++i) {
                        float* to = o[i] + g * 4;
                        to[0] = fmaf(av[i], lo.x, to[0]), to[1] = fmaf(av[i], lo.y, to[1]);
                        to[2] = fmaf(av[i], hi.x, to[2]), to[3] = fmaf(av[i], hi.y, to[3]);
                    }
                }
            }
        }
        for (int i = 0; i < 4; ++i) {
            const int row = m0 + ty * 4 + i;
            if (row >= S) break;
            const float inv = 1.0f / l[i];
            for (int g = 0; g < NC; ++g) {
                __half2 pack[2] = {__floats2half2_rn(o[i][g * 4] * inv, o[i][g * 4 + 1] * inv),
                                   __floats2half2_rn(o[i][g * 4 + 2] * inv, o[i][g * 4 + 3] * inv)};
                *reinterpret_cast<uint2*>(out + base + size_t(row) * D + g * 64 + tx * 4) = *reinterpret_cast<uint2*>(pack);
            }
        }
    }
}
