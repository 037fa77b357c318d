/* evoengine
name: attention_parts_transposed_values
precision: fp16
summary: the keys of a head are shared out over blocks, each with its own softmax; a second launch merges the parts
tunables:
  TILE_Q: [64, 32]      # query rows of a block, 16 for each warp
  TILE_K: [32, 64]      # keys of a tile
  PARTS: [3, 2, 4, 1]   # blocks that share out the keys of a head
let:
  chunk: round_up(ceil_div(S, PARTS), TILE_K)
scratch:
  part_out: {dtype: float32, shape: [B*H, PARTS, S, D]}
  part_max: {dtype: float32, shape: [B*H, PARTS, S]}
  part_sum: {dtype: float32, shape: [B*H, PARTS, S]}
launches:
  - kernel: attend_part<D, causal>
    grid: ["ceil_div(S, TILE_Q)", PARTS, B*H]
    block: [2*TILE_Q]
    shared: 2*TILE_K*(D + 8) + 2*D*(TILE_K + 8)
    args: [q, k, v, part_out, part_max, part_sum, S, chunk, scale]
  - kernel: merge_parts<D>
    grid: ["ceil_div(B*H*S, 4)"]
    block: [128]
    args: [part_out, part_max, part_sum, out, B*H*S, S, scale]
*/
#include <cuda_fp16.h>

constexpr int THREADS = 2 * TILE_Q, PAD = 8;   // PAD: 16 bytes a row, so that eight neighbouring rows begin in different banks
constexpr float LOG2E = 1.4426950408889634f;
constexpr unsigned ALL_LANES = 0xffffffffu;
template <int D> struct tile_memory {
    __half key[TILE_K][D + PAD];
    __half value_t[D][TILE_K + PAD];   // transposed: two keys of a column are one 32-bit operand
};
__device__ __forceinline__ unsigned load_pair(const __half* from) { return *reinterpret_cast<const unsigned*>(from); }
__device__ __forceinline__ unsigned to_halves(float low, float high) {
    const __half2 both = __floats2half2_rn(low, high);
    return reinterpret_cast<const unsigned&>(both);
}
__device__ __forceinline__ void mma_16x8x16(float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

template <int D, bool CAUSAL>
__global__ void __launch_bounds__(THREADS)
attend_part(const __half* __restrict__ q, const __half* __restrict__ k, const __half* __restrict__ v, float* __restrict__ part_out,
            float* __restrict__ part_max, float* __restrict__ part_sum, int S, int chunk, float scale) {
    constexpr int PER_ROW = D / 8, PIECES = TILE_K * PER_ROW / THREADS;
    extern __shared__ __align__(16) unsigned char raw[];
    tile_memory<D>& tile = *reinterpret_cast<tile_memory<D>*>(raw);
    const int lane = threadIdx.x % 32, group = lane / 4, pair = lane % 4 * 2;
    const int block_row = blockIdx.x * TILE_Q, my_row = block_row + threadIdx.x / 32 * 16 + group;   // and my_row + 8
    const size_t head = size_t(blockIdx.z) * S * D;
    const int begin = blockIdx.y * chunk, end = min(begin + chunk, CAUSAL ? min(S, block_row + TILE_Q) : S);
    const float factor = scale * LOG2E;
    unsigned q_frag[D / 16][4];
    for (int i = 0; i < D / 4; ++i) {
        const int row = my_row + i % 2 * 8, column = i / 4 * 16 + i % 4 / 2 * 8 + pair;
        q_frag[i / 4][i % 4] = row < S ? load_pair(q + head + size_t(row) * D + column) : 0u;
    }
    uint4 next_key[PIECES], next_value[PIECES];
    auto fetch = [&](int first) {
        for (int i = 0; i < PIECES; ++i) {
            const int at = i * THREADS + threadIdx.x, key = first + at / PER_ROW, value = first + at % TILE_K;
            next_key[i] = key < end ? *reinterpret_cast<const uint4*>(k + head + size_t(key) * D + at % PER_ROW * 8) : uint4{};
            next_value[i] = value < end ? *reinterpret_cast<const uint4*>(v + head + size_t(value) * D + at / TILE_K * 8) : uint4{};
        }
    };
    float o[D / 8][4] = {}, row_max[2] = {-INFINITY, -INFINITY}, row_sum[2] = {};
    fetch(begin);
    for (int first = begin; first < end; first += TILE_K) {
        __syncthreads();                 // every warp has left the tile before
        for (int i = 0; i < PIECES; ++i) {
            const int at = i * THREADS + threadIdx.x;
            *reinterpret_cast<uint4*>(&tile.key[at / PER_ROW][at % PER_ROW * 8]) = next_key[i];
            const __half* eight = reinterpret_cast<const __half*>(&next_value[i]);
            for (int j = 0; j < 8; ++j) tile.value_t[at / TILE_K * 8 + j][at % TILE_K] = eight[j];
        }
        __syncthreads();
        if (first + TILE_K < end) fetch(first + TILE_K);   // on its way while this tile is multiplied

        float s[TILE_K / 8][4] = {};
        for (int n = 0; n < TILE_K / 8; ++n)
            for (int d = 0; d < D / 16; ++d) {
                const __half* from = &tile.key[n * 8 + group][d * 16 + pair];
                mma_16x8x16(s[n], q_frag[d], load_pair(from), load_pair(from + 8));
            }
        for (int e = 0; e < 4; ++e)
            for (int n = 0; n < TILE_K / 8; ++n) {
                const int key = first + n * 8 + pair + e % 2, row = my_row + e / 2 * 8;
                if (key >= end || (CAUSAL && key > row)) s[n][e] = -INFINITY;
            }
        for (int h = 0; h < 2; ++h) {
            float top = row_max[h];
            for (int n = 0; n < TILE_K / 8; ++n) top = fmaxf(top, fmaxf(s[n][2 * h], s[n][2 * h + 1]));
            for (int step = 1; step < 4; step *= 2) top = fmaxf(top, __shfl_xor_sync(ALL_LANES, top, step));
            const float base = top == -INFINITY ? 0.0f : top;      // no key of this row yet: -inf - -inf would be NaN
            const float shrink = exp2f((row_max[h] - base) * factor);
            row_max[h] = top, row_sum[h] *= shrink;
            for (int n = 0; n < D / 8; ++n) o[n][2 * h] *= shrink, o[n][2 * h + 1] *= shrink;
            for (int n = 0; n < TILE_K / 8; ++n)
                for (int e = 2 * h; e < 2 * h + 2; ++e) row_sum[h] += s[n][e] = exp2f((s[n][e] - base) * factor);
        }
        for (int j = 0; j < TILE_K / 16; ++j) {
            const unsigned p[4] = {to_halves(s[2 * j][0], s[2 * j][1]), to_halves(s[2 * j][2], s[2 * j][3]),
                                   to_halves(s[2 * j + 1][0], s[2 * j + 1][1]), to_halves(s[2 * j + 1][2], s[2 * j + 1][3])};
            for (int n = 0; n < D / 8; ++n) {
                const __half* from = &tile.value_t[n * 8 + group][j * 16 + pair];
                mma_16x8x16(o[n], p, load_pair(from), load_pair(from + 8));
            }
        }
    }
    for (int h = 0; h < 2; ++h) {
        float sum = row_sum[h];
        for (int step = 1; step < 4; step *= 2) sum += __shfl_xor_sync(ALL_LANES, sum, step);
        const int row = my_row + 8 * h;
        if (row >= S) continue;
        const size_t slot = (size_t(blockIdx.z) * PARTS + blockIdx.y) * S + row;
        if (pair == 0) part_max[slot] = row_max[h], part_sum[slot] = sum;
        const float inverse = sum > 0.0f ? 1.0f / sum : 0.0f;        // a part without a visible key is zero
        for (int n = 0; n < D / 8; ++n)
            *reinterpret_cast<float2*>(part_out + slot * D + n * 8 + pair) = make_float2(o[n][2 * h] * inverse, o[n][2 * h + 1] * inverse);
    }
}

// A warp for each row: lane p weighs part p, then all lanes add up the parts, two columns at a time.
template <int D>
__global__ void __launch_bounds__(128)
merge_parts(const float* __restrict__ part_out, const float* __restrict__ part_max, const float* __restrict__ part_sum,
            __half* __restrict__ out, int rows, int S, float scale) {
    const int row = blockIdx.x * 4 + threadIdx.x / 32, lane = threadIdx.x % 32;
    if (row >= rows) return;
    const size_t first_slot = size_t(row / S) * PARTS * S + row % S;
    const float own_max = lane < PARTS ? part_max[first_slot + size_t(lane) * S] : -INFINITY;
    float top = own_max;
    for (int step = 16; step > 0; step /= 2) top = fmaxf(top, __shfl_xor_sync(ALL_LANES, top, step));
    const float weight = lane < PARTS ? part_sum[first_slot + size_t(lane) * S] * exp2f((own_max - top) * scale * LOG2E) : 0.0f;
    float total = weight;
    for (int step = 16; step > 0; step /= 2) total += __shfl_xor_sync(ALL_LANES, total, step);
    for (int column = 2 * lane; column < D; column += 64) {
        float2 sum = {};
        for (int part = 0; part < PARTS; ++part) {
            const float w = __shfl_sync(ALL_LANES, weight, part);
            const float2 o = *reinterpret_cast<const float2*>(part_out + (first_slot + size_t(part) * S) * D + column);
            sum.x += w * o.x, sum.y += w * o.y;
        }
        *reinterpret_cast<__half2*>(out + size_t(row) * D + column) = __floats2half2_rn(sum.x / total, sum.y / total);
    }
}
