/* evoengine
name: attention_async_stages
precision: fp16
summary: four warps of 16 queries; tiles of 32 keys arrive by cp.async in two stages, swizzled; softmax to base 2; results leave through shared memory
launches:
  - kernel: attention<D, causal>
    grid: ["ceil_div(S, 64)", "B*H"]
    block: [128]
    shared: 2 * D * (64 + 4 * 32)
    args: [q, k, v, out, S, scale * 1.4426950408889634]
*/
#include <cuda_fp16.h>

constexpr int ROWS = 64, KEYS = 32, THREADS = 128;

// c[16 x 8] += a[16 x 16] * b[16 x 8]
__device__ __forceinline__ void mma(float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

__device__ __forceinline__ unsigned address_of(const half* from) {
    return static_cast<unsigned>(__cvta_generic_to_shared(from));
}

__device__ __forceinline__ void ldmatrix(unsigned (&r)[4], const half* from) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(address_of(from)));
}

__device__ __forceinline__ void ldmatrix_trans(unsigned (&r)[4], const half* from) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(address_of(from)));
}

// 16 bytes, or zeros where there is nothing to read
__device__ __forceinline__ void copy_async(half* to, const half* from, bool inside) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(address_of(to)), "l"(from), "r"(inside ? 16 : 0));
}

__device__ __forceinline__ void commit() { asm volatile("cp.async.commit_group;"); }
template <int N> __device__ __forceinline__ void wait() { asm volatile("cp.async.wait_group %0;" ::"n"(N)); }

__device__ __forceinline__ unsigned pack(float low, float high) {
    const half2 both = __floats2half2_rn(low, high);
    return *reinterpret_cast<const unsigned*>(&both);
}

template <int D, bool CAUSAL>
__global__ void __launch_bounds__(THREADS)
attention(const half* __restrict__ q, const half* __restrict__ k, const half* __restrict__ v, half* __restrict__ out, int S,
          float scale_log2) {
    constexpr int CHUNKS = D / 8;
    extern __shared__ __align__(16) unsigned char memory[];
    half* queries = reinterpret_cast<half*>(memory);
    half* keys = queries + ROWS * D;        // [2][KEYS][D]
    half* values = keys + 2 * KEYS * D;     // [2][KEYS][D]
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int first = blockIdx.x * ROWS;
    const size_t base = size_t(blockIdx.y) * S * D;

    // chunks of 8 halves change places within a row, so that ldmatrix meets no bank twice
    auto at = [](int row, int chunk) { return row * D + (chunk ^ (row & 7)) * 8; };
    auto fetch = [&](int stage, int start) {
        for (int i = threadIdx.x; i < KEYS * CHUNKS; i += THREADS) {
            const int r = i / CHUNKS, c = i % CHUNKS;
            const bool inside = start + r < S;
            const size_t from = base + size_t(inside ? start + r : 0) * D + c * 8;
            copy_async(keys + stage * KEYS * D + at(r, c), k + from, inside);
            copy_async(values + stage * KEYS * D + at(r, c), v + from, inside);
        }
        commit();
    };

    for (int i = threadIdx.x; i < ROWS * CHUNKS; i += THREADS) {
        const int r = i / CHUNKS, c = i % CHUNKS;
        const bool inside = first + r < S;
        copy_async(queries + at(r, c), q + base + size_t(inside ? first + r : 0) * D + c * 8, inside);
    }
    const int end = CAUSAL ? min(S, first + ROWS) : S;
    const int tiles = (end + KEYS - 1) / KEYS;
    fetch(0, 0);

    unsigned x[D / 16][4];
    float sum[D / 8][4] = {}, total[2] = {}, top[2];
    top[0] = top[1] = __int_as_float(0xff800000);
    for (int tile = 0; tile < tiles; ++tile) {
        const int stage = tile & 1, start = tile * KEYS;
        if (tile + 1 < tiles) {
            fetch(stage ^ 1, start + KEYS);
            wait<1>();
        } else {
            wait<0>();
        }
        __syncthreads();
        if (tile == 0)
            for (int d = 0; d < D / 16; ++d)
                ldmatrix(x[d], queries + at(warp * 16 + lane % 16, d * 2 + lane / 16));

        const half* key_tile = keys + stage * KEYS * D;
        float score[KEYS / 8][4] = {};
        for (int n = 0; n < KEYS / 16; ++n)
            for (int d = 0; d < D / 16; ++d) {
                unsigned y[4];
                ldmatrix(y, key_tile + at(n * 16 + lane / 16 * 8 + lane % 8, d * 2 + lane / 8 % 2));
                mma(score[2 * n], x[d], y[0], y[1]);
                mma(score[2 * n + 1], x[d], y[2], y[3]);
            }
        for (int n = 0; n < KEYS / 8; ++n)
            for (int e = 0; e < 4; ++e) {
                const int key = start + n * 8 + lane % 4 * 2 + (e & 1);
                const int row = first + warp * 16 + lane / 4 + (e >> 1) * 8;
                const bool seen = key < S && (!CAUSAL || key <= row);
                score[n][e] = seen ? score[n][e] * scale_log2 : __int_as_float(0xff800000);
            }
        for (int h = 0; h < 2; ++h) {
            float high = top[h];
            for (int n = 0; n < KEYS / 8; ++n) high = fmaxf(high, fmaxf(score[n][2 * h], score[n][2 * h + 1]));
            high = fmaxf(high, __shfl_xor_sync(~0u, high, 1));
            high = fmaxf(high, __shfl_xor_sync(~0u, high, 2));
            const float shrink = exp2f(top[h] - high);
            top[h] = high;
            total[h] *= shrink;
            for (int c = 0; c < D / 8; ++c) sum[c][2 * h] *= shrink, sum[c][2 * h + 1] *= shrink;
            for (int n = 0; n < KEYS / 8; ++n)
                for (int e = 2 * h; e < 2 * h + 2; ++e) {
                    score[n][e] = exp2f(score[n][e] - high);
                    total[h] += score[n][e];
                }
        }
        const half* value_tile = values + stage * KEYS * D;
        for (int j = 0; j < KEYS / 16; ++j) {
            const float(&left)[4] = score[2 * j], (&right)[4] = score[2 * j + 1];
            const unsigned weights[4] = {pack(left[0], left[1]), pack(left[2], left[3]), pack(right[0], right[1]),
                                         pack(right[2], right[3])};
            for (int c = 0; c < D / 16; ++c) {
                unsigned y[4];
                ldmatrix_trans(y, value_tile + at(j * 16 + lane / 8 % 2 * 8 + lane % 8, c * 2 + lane / 16));
                mma(sum[2 * c], weights, y[0], y[1]);
                mma(sum[2 * c + 1], weights, y[2], y[3]);
            }
        }
        __syncthreads();
    }

    // the rows of queries that a warp has read are free for its results
    for (int h = 0; h < 2; ++h) {
        total[h] += __shfl_xor_sync(~0u, total[h], 1);
        total[h] += __shfl_xor_sync(~0u, total[h], 2);
        const float inverse = 1.0f / total[h];
        const int row = warp * 16 + lane / 4 + h * 8;
        for (int c = 0; c < D / 8; ++c)
            *reinterpret_cast<half2*>(queries + at(row, c) + lane % 4 * 2) =
                __floats2half2_rn(sum[c][2 * h] * inverse, sum[c][2 * h + 1] * inverse);
    }
    __syncwarp();
    for (int i = lane; i < 16 * CHUNKS; i += 32) {
        const int r = warp * 16 + i / CHUNKS, c = i % CHUNKS;
        if (first + r < S)
            *reinterpret_cast<uint4*>(out + base + size_t(first + r) * D + c * 8) =
                *reinterpret_cast<const uint4*>(queries + at(r, c));
    }
}
