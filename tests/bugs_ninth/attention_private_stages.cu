/* evoengine
name: attention_private_stages
precision: fp16
summary: a block has 16 queries; every warp has tiles of 16 keys of its own that arrive by cp.async in two stages, read by ldmatrix; the warps' shares are merged at the end
launches:
  - kernel: attention<D, causal>
    grid: ["ceil_div(S, 16)", "B * H"]
    block: [128]
    shared: 4 * 4 * 16 * (D + 8) * 2
    args: [q, k, v, out, S, scale * 1.4426950408889634]
*/
#include <cuda_fp16.h>

constexpr int WARPS = 4, TILE = 16;

__device__ __forceinline__ unsigned shared_address(const void* at) { return static_cast<unsigned>(__cvta_generic_to_shared(at)); }

// c[16 x 8] += a[16 x 16] b[16 x 8]
__device__ __forceinline__ void mma(float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

__device__ __forceinline__ void ldmatrix(unsigned (&r)[4], const half* from) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(shared_address(from)));
}

__device__ __forceinline__ void ldmatrix_transposed(unsigned (&r)[4], const half* from) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(shared_address(from)));
}

__device__ __forceinline__ void copy_async(half* to, const half* from, bool there) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(to)), "l"(from), "r"(there ? 16 : 0));
}

__device__ __forceinline__ void commit() { asm volatile("cp.async.commit_group;"); }
template <int N> __device__ __forceinline__ void wait() { asm volatile("cp.async.wait_group %0;" ::"n"(N)); }

__device__ __forceinline__ unsigned two_halves(float low, float high) {
    const half2 both = __floats2half2_rn(low, high);
    return *reinterpret_cast<const unsigned*>(&both);
}

template <int D, bool CAUSAL>
__global__ void __launch_bounds__(32 * WARPS)
attention(const half* __restrict__ q, const half* __restrict__ k, const half* __restrict__ v, half* __restrict__ out, int S,
          float scale_2) {
    constexpr int PITCH = D + 8, SIZE = TILE * PITCH;
    extern __shared__ __align__(16) unsigned char memory[];
    __shared__ float tops[WARPS][TILE], totals[WARPS][TILE];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, group = lane / 4, pair = lane % 4 * 2;
    half* own = reinterpret_cast<half*>(memory) + warp * 4 * SIZE;   // [stage][keys, values][TILE][PITCH]
    const int first = blockIdx.x * TILE;
    const size_t head = size_t(blockIdx.y) * S * D;
    const int end = CAUSAL ? min(S, first + TILE) : S, tiles = (end + TILE - 1) / TILE;

    unsigned query[D / 16][4];
    for (int d = 0; d < D / 16; ++d)
        for (int i = 0; i < 4; ++i) {
            const int row = first + group + i % 2 * 8, column = d * 16 + i / 2 * 8 + pair;
            query[d][i] = row < S ? *reinterpret_cast<const unsigned*>(q + head + size_t(row) * D + column) : 0u;
        }

    auto fetch = [&](int tile, int stage) {
        half *keys = own + stage * 2 * SIZE, *values = keys + SIZE;
        for (int i = lane; i < TILE * D / 8; i += 32) {
            const int r = i / (D / 8), c = i % (D / 8) * 8, key = tile * TILE + r;
            const size_t from = head + size_t(min(key, S - 1)) * D + c;
            copy_async(keys + r * PITCH + c, k + from, key < S);
            copy_async(values + r * PITCH + c, v + from, key < S);
        }
    };

    float sum[D / 8][4] = {};
    float top[2] = {-INFINITY, -INFINITY}, total[2] = {};
    if (warp < tiles) fetch(warp, 0);
    commit();
    for (int tile = warp, stage = 0; tile < tiles; tile += WARPS, stage ^= 1) {
        if (tile + WARPS < tiles) fetch(tile + WARPS, stage ^ 1);
        commit();
        wait<1>();
        __syncwarp();
        const half *keys = own + stage * 2 * SIZE, *values = keys + SIZE;

        float score[2][4] = {};
        for (int d = 0; d < D / 16; ++d) {
            unsigned key[4];
            ldmatrix(key, keys + (lane / 16 * 8 + lane % 8) * PITCH + d * 16 + lane / 8 % 2 * 8);
            mma(score[0], query[d], key[0], key[1]);
            mma(score[1], query[d], key[2], key[3]);
        }

        float high[2] = {top[0], top[1]};
        for (int n = 0; n < 2; ++n)
            for (int e = 0; e < 4; ++e) {
                const int key = tile * TILE + n * 8 + pair + e % 2, row = first + group + e / 2 * 8;
                const bool hidden = key >= S || (CAUSAL && key > row);
                score[n][e] = hidden ? -INFINITY : score[n][e] * scale_2;
                high[e / 2] = fmaxf(high[e / 2], score[n][e]);
            }
        float shrink[2];
        for (int h = 0; h < 2; ++h) {
            high[h] = fmaxf(high[h], __shfl_xor_sync(~0u, high[h], 1));
            high[h] = fmaxf(high[h], __shfl_xor_sync(~0u, high[h], 2));
            shrink[h] = exp2f(top[h] - high[h]);
            top[h] = high[h];
        }
        float added[2] = {};
        for (int n = 0; n < 2; ++n)
            for (int e = 0; e < 4; ++e) {
                score[n][e] = exp2f(score[n][e] - top[e / 2]);
                added[e / 2] += score[n][e];
            }
        for (int h = 0; h < 2; ++h) total[h] = total[h] * shrink[h] + added[h];
        for (int c = 0; c < D / 8; ++c)
            for (int e = 0; e < 4; ++e) sum[c][e] *= shrink[e / 2];

        const unsigned weight[4] = {two_halves(score[0][0], score[0][1]), two_halves(score[0][2], score[0][3]),
                                    two_halves(score[1][0], score[1][1]), two_halves(score[1][2], score[1][3])};
        for (int c = 0; c < D / 16; ++c) {
            unsigned value[4];
            ldmatrix_transposed(value, values + lane % 16 * PITCH + c * 16 + lane / 16 * 8);
            mma(sum[2 * c], weight, value[0], value[1]);
            mma(sum[2 * c + 1], weight, value[2], value[3]);
        }
        __syncwarp();   // all lanes have read this stage
    }

    wait<0>();
    __syncthreads();    // the stages become room for the shares
    float* shares = reinterpret_cast<float*>(memory);   // [WARPS][TILE][D]
    for (int h = 0; h < 2; ++h) {
        total[h] += __shfl_xor_sync(~0u, total[h], 1);
        total[h] += __shfl_xor_sync(~0u, total[h], 2);
        const int row = group + h * 8;
        if (pair == 0) {
            tops[warp][row] = top[h];
            totals[warp][row] = total[h];
        }
        for (int c = 0; c < D / 8; ++c) {
            float* to = shares + (warp * TILE + row) * D + c * 8 + pair;
            to[0] = sum[c][2 * h];
            to[1] = sum[c][2 * h + 1];
        }
    }
    __syncthreads();
    for (int i = threadIdx.x; i < TILE * D; i += 32 * WARPS) {
        const int row = i / D, column = i % D;
        if (first + row >= S) break;
        float high = -INFINITY, numerator = 0.0f, denominator = 0.0f;
        for (int w = 0; w < WARPS; ++w) high = fmaxf(high, tops[w][row]);
        for (int w = 0; w < WARPS; ++w) {
            const float factor = exp2f(tops[w][row] - high);
            numerator += factor * shares[(w * TILE + row) * D + column];
            denominator += factor * totals[w][row];
        }
        out[head + size_t(first + row) * D + column] = __float2half(numerator / denominator);
    }
}
