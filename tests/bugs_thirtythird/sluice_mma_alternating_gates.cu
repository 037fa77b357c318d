/* evoengine
name: sluice_mma_alternating_gates
precision: fp16
summary: mma.sync, Q straight into registers, K and V in one buffer each that are refilled in turns by cp.async, blocks that walk over several query tiles
tunables:
  ITEMS: [2, 1, 4]             # query tiles that a block works through
  KEYS: [32, 64]               # keys of a tile
let:
  QUERY_TILES: ceil_div(S, 64)
  WORK: B * H * QUERY_TILES
launches:
  - kernel: sluice<D, causal>
    grid: ["ceil_div(WORK, ITEMS)"]
    block: [128]
    shared: 4 * KEYS * (D + 8)
    args: [q, k, v, out, "B * H", S, QUERY_TILES, scale]
*/
// While a warp multiplies with K, V is on its way; while it multiplies with V, the next K is. So one buffer
// for each is enough, and a step costs two barriers.
#include <cuda_fp16.h>
#include <cstdint>

constexpr int warps = 4, rows_per_warp = 16, rows_per_block = warps * rows_per_warp, threads = warps * 32;
constexpr float log2_of_e = 1.4426950408889634f;

__device__ __forceinline__ float minus_infinity() { return __int_as_float(0xff800000); }

// ---- cp.async ----
__device__ __forceinline__ void copy_16(const __half* to, const __half* from, bool exists) {
    const uint32_t address = static_cast<uint32_t>(__cvta_generic_to_shared(to));
    const int bytes = exists ? 16 : 0;
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(address), "l"(from), "r"(bytes) : "memory");
}
__device__ __forceinline__ void close_group() { asm volatile("cp.async.commit_group;" ::: "memory"); }
__device__ __forceinline__ void all_arrived() { asm volatile("cp.async.wait_group 0;" ::: "memory"); }

// ---- tensor cores; in comments g = lane / 4 and t = lane % 4 ----
struct accumulator {       // 16 x 8: x[0], x[1] row g, columns 2t and 2t + 1; x[2], x[3] row g + 8
    float x[4];
};
struct left_operand {      // 16 x 16: (g, 2t), (g + 8, 2t), (g, 2t + 8), (g + 8, 2t + 8), pairs of columns
    uint32_t r[4];
};
__device__ __forceinline__ void multiply_add(accumulator& c, const left_operand& a, uint32_t b0, uint32_t b1) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(c.x[0]), "+f"(c.x[1]), "+f"(c.x[2]), "+f"(c.x[3])
                 : "r"(a.r[0]), "r"(a.r[1]), "r"(a.r[2]), "r"(a.r[3]), "r"(b0), "r"(b1));
}
__device__ __forceinline__ uint32_t two_halves(float low, float high) {
    const __half2 both = __floats2half2_rn(low, high);
    return *reinterpret_cast<const uint32_t*>(&both);
}
__device__ __forceinline__ uint32_t word(const __half* at) { return *reinterpret_cast<const uint32_t*>(at); }

template <int D>
struct tile {              // KEYS rows of K or V; 16 bytes of padding keep eight rows in different banks
    static constexpr int pitch = D + 8;
    __half* data;

    __device__ __forceinline__ void refill(const __half* head, int first, int S) const {
        for (int i = threadIdx.x; i < KEYS * (D / 8); i += threads) {
            const int row = i / (D / 8), column = i % (D / 8) * 8, key = first + row;
            const bool exists = key < S;
            copy_16(data + row * pitch + column, head + (exists ? size_t(key) * D + column : 0), exists);
        }
        close_group();
    }
    // Values of 16 keys in 16 columns, as operands of two products: b[0], b[1] and b[2], b[3].
    __device__ __forceinline__ void load_transposed(uint32_t (&b)[4], int row, int column, int lane) const {
        const __half* from = data + (row + lane % 16) * pitch + column + lane / 16 * 8;
        const uint32_t address = static_cast<uint32_t>(__cvta_generic_to_shared(from));
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                     : "=r"(b[0]), "=r"(b[1]), "=r"(b[2]), "=r"(b[3]) : "r"(address) : "memory");
    }
};

// What online softmax knows of rows g and g + 8.
struct row_pair {
    float top[2], sum[2];

    __device__ __forceinline__ void reset() {
        top[0] = top[1] = minus_infinity();
        sum[0] = sum[1] = 0.0f;
    }
};
__device__ __forceinline__ float max_of_four_lanes(float x) {
    x = fmaxf(x, __shfl_xor_sync(~0u, x, 1));
    return fmaxf(x, __shfl_xor_sync(~0u, x, 2));
}
__device__ __forceinline__ float sum_of_four_lanes(float x) {
    x += __shfl_xor_sync(~0u, x, 1);
    return x + __shfl_xor_sync(~0u, x, 2);
}

template <int D, bool causal>
__global__ void __launch_bounds__(threads)
sluice(const __half* __restrict__ q, const __half* __restrict__ k, const __half* __restrict__ v,
       __half* __restrict__ out, int heads, int S, int query_tiles, float scale) {
    extern __shared__ __align__(16) __half buffers[];
    const tile<D> k_tile{buffers}, v_tile{buffers + KEYS * tile<D>::pitch};
    const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
    const float factor = scale * log2_of_e;

    for (int item = blockIdx.x; item < heads * query_tiles; item += gridDim.x) {
        // the last query tiles first: with the causal mask they take longest
        const int query_tile = query_tiles - 1 - item / heads, head = item % heads;
        const size_t base = size_t(head) * S * D;
        const int block_row = query_tile * rows_per_block;
        const int row = block_row + threadIdx.x / 32 * rows_per_warp + g;
        const int key_end = causal ? min(S, block_row + rows_per_block) : S;
        const int steps = (key_end + KEYS - 1) / KEYS;

        k_tile.refill(k + base, 0, S);

        left_operand query[D / 16];
#pragma unroll
        for (int d = 0; d < D / 16; ++d)
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                const int r = row + i % 2 * 8, column = d * 16 + i / 2 * 8 + 2 * t;
                query[d].r[i] = r < S ? word(q + base + size_t(r) * D + column) : 0u;
            }

        accumulator output[D / 8] = {};
        row_pair state;
        state.reset();

        for (int step = 0; step < steps; ++step) {
            all_arrived();
            __syncthreads();                                   // K is here; nobody needs the old V any more
            v_tile.refill(v + base, step * KEYS, S);

            accumulator score[KEYS / 8] = {};
#pragma unroll
            for (int n = 0; n < KEYS / 8; ++n) {
                const __half* key_row = k_tile.data + (n * 8 + g) * tile<D>::pitch + 2 * t;
#pragma unroll
                for (int d = 0; d < D / 16; ++d)
                    multiply_add(score[n], query[d], word(key_row + d * 16), word(key_row + d * 16 + 8));
            }

            const bool whole = (step + 1) * KEYS <= (causal ? block_row : S);
            if (!whole)
#pragma unroll
                for (int n = 0; n < KEYS / 8; ++n)
#pragma unroll
                    for (int e = 0; e < 4; ++e) {
                        const int key = step * KEYS + n * 8 + 2 * t + e % 2;
                        if (key >= S || (causal && key > row + e / 2 * 8)) score[n].x[e] = minus_infinity();
                    }

#pragma unroll
            for (int h = 0; h < 2; ++h) {
                float top = state.top[h];
#pragma unroll
                for (int n = 0; n < KEYS / 8; ++n)
                    top = fmaxf(top, fmaxf(score[n].x[2 * h], score[n].x[2 * h + 1]));
                top = max_of_four_lanes(top);
                const float shrink = exp2f((state.top[h] - top) * factor);
                state.top[h] = top;
                state.sum[h] *= shrink;
#pragma unroll
                for (int n = 0; n < KEYS / 8; ++n)
#pragma unroll
                    for (int e = 2 * h; e < 2 * h + 2; ++e) {
                        score[n].x[e] = exp2f((score[n].x[e] - top) * factor);
                        state.sum[h] += score[n].x[e];
                    }
#pragma unroll
                for (int c = 0; c < D / 8; ++c) {
                    output[c].x[2 * h] *= shrink;
                    output[c].x[2 * h + 1] *= shrink;
                }
            }

            all_arrived();
            __syncthreads();                                   // V is here; nobody needs this K any more
            if (step + 1 < steps) k_tile.refill(k + base, (step + 1) * KEYS, S);

#pragma unroll
            for (int j = 0; j < KEYS / 16; ++j) {
                // the accumulators of two products side by side are the left operand of the next
                const accumulator &l = score[2 * j], &r = score[2 * j + 1];
                const left_operand weights{{two_halves(l.x[0], l.x[1]), two_halves(l.x[2], l.x[3]),
                                            two_halves(r.x[0], r.x[1]), two_halves(r.x[2], r.x[3])}};
#pragma unroll
                for (int c = 0; c < D / 16; ++c) {
                    uint32_t b[4];
                    v_tile.load_transposed(b, j * 16, c * 16, lane);
                    multiply_add(output[2 * c], weights, b[0], b[1]);
                    multiply_add(output[2 * c + 1], weights, b[2], b[3]);
                }
            }
        }

#pragma unroll
        for (int h = 0; h < 2; ++h) {
            const float inverse = 1.0f / sum_of_four_lanes(state.sum[h]);
            const int r = row + 8 * h;
            if (r >= S) continue;
#pragma unroll
            for (int c = 0; c < D / 8; ++c)
                *reinterpret_cast<__half2*>(out + base + size_t(r) * D + c * 8 + 2 * t) =
                    __floats2half2_rn(output[c].x[2 * h] * inverse, output[c].x[2 * h + 1] * inverse);
        }
    }
}
