/* evoengine
name: split_keys_then_combine
precision: fp16
summary: mma attention whose keys are shared out among blocks, merged by a second launch from scratch buffers
tunables:
  ROWS: [64, 32]       # query rows of a block, 16 a warp
  KEYS: [32, 64]       # keys of a tile
  SPLITS: [5, 3, 2]    # blocks that share out the keys of a row
let:
  TILES_PER_SPLIT: ceil_div(ceil_div(S, KEYS), SPLITS)
  KEY_BYTES: 2 * KEYS * (D + 8)
  VALUE_BYTES: 2 * D * (KEYS + 8)
scratch:
  part_out: {dtype: float32, shape: [SPLITS, "B*H", S, D]}
  part_stat: {dtype: float32, shape: [SPLITS, "B*H", S, 2]}
launches:
  - kernel: attend_split<D, causal>
    grid: ["ceil_div(S, ROWS)", "B*H", SPLITS]
    block: ["ROWS * 2"]
    shared: KEY_BYTES + VALUE_BYTES
    args: [q, k, v, part_out, part_stat, S, TILES_PER_SPLIT, scale]
  - kernel: combine_splits<D>
    grid: ["ceil_div(B*H*S, 8)"]
    block: [256]
    args: [part_out, part_stat, out, "B*H*S"]
*/
// Few query rows leave most of a large GPU idle, so several blocks work on the same rows with different keys. Each
// writes its unnormalised output with the maximum and the sum of its weights; the second launch merges them.
#include <cuda_fp16.h>

constexpr int THREADS = ROWS * 2;
__device__ __forceinline__ float neg_inf() { return __int_as_float(0xff800000); }

__device__ __forceinline__ void mma_16816(float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
__device__ __forceinline__ unsigned word(const __half* p) { return *reinterpret_cast<const unsigned*>(p); }
__device__ __forceinline__ unsigned pack_half2(float lo, float hi) {
    const __half2 both = __floats2half2_rn(lo, hi);
    return *reinterpret_cast<const unsigned*>(&both);
}

template <int D, bool CAUSAL>
__global__ void __launch_bounds__(THREADS)
attend_split(const __half* __restrict__ q, const __half* __restrict__ k, const __half* __restrict__ v,
             float* __restrict__ part_out, float* __restrict__ part_stat, int S, int tiles_per_split, float scale) {
    constexpr int K_PITCH = D + 8, V_PITCH = KEYS + 8;
    extern __shared__ __align__(16) unsigned char smem[];
    __half* k_tile = reinterpret_cast<__half*>(smem);      // [KEYS][K_PITCH]
    __half* v_tile = k_tile + KEYS * K_PITCH;              // [D][V_PITCH], transposed: a word holds two keys
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, group = lane / 4, quad = lane % 4, head = blockIdx.y, split = blockIdx.z;
    const int row0 = blockIdx.x * ROWS + warp * 16 + group;     // this lane has rows row0 and row0 + 8
    const size_t base = size_t(head) * S * D;

    unsigned q_frag[D / 16][4];
    for (int c = 0; c < D / 16; ++c)
        for (int i = 0; i < 4; ++i) {
            const int row = min(row0 + i % 2 * 8, S - 1), col = c * 16 + i / 2 * 8 + quad * 2;
            q_frag[c][i] = word(q + base + size_t(row) * D + col);
        }
    float acc[D / 8][4] = {}, row_max[2] = {neg_inf(), neg_inf()}, row_sum[2] = {};
    const float factor = scale * 1.4426950408889634f;      // log2(e)
    const int last_key = CAUSAL ? min(S, int(blockIdx.x + 1) * ROWS) : S;
    const int tile_end = min((split + 1) * tiles_per_split, (last_key + KEYS - 1) / KEYS);
    for (int tile = split * tiles_per_split; tile < tile_end; ++tile) {
        const int key0 = tile * KEYS;
        __syncthreads();      // the tile before this one has been read
        for (int i = threadIdx.x; i < KEYS * (D / 8); i += THREADS) {
            const int r = i / (D / 8), c = i % (D / 8) * 8;
            *reinterpret_cast<uint4*>(k_tile + r * K_PITCH + c) =
                key0 + r < S ? *reinterpret_cast<const uint4*>(k + base + size_t(key0 + r) * D + c) : make_uint4(0, 0, 0, 0);
        }
        for (int i = threadIdx.x; i < KEYS / 2 * (D / 2); i += THREADS) {       // two keys times two columns
            const int key = i / (D / 2) * 2, col = i % (D / 2) * 2;
            const unsigned even = key0 + key < S ? word(v + base + size_t(key0 + key) * D + col) : 0u;
            const unsigned odd = key0 + key + 1 < S ? word(v + base + size_t(key0 + key + 1) * D + col) : 0u;
            *reinterpret_cast<unsigned*>(v_tile + col * V_PITCH + key) = __byte_perm(even, odd, 0x5410);
            *reinterpret_cast<unsigned*>(v_tile + (col + 1) * V_PITCH + key) = __byte_perm(even, odd, 0x7632);
        }
        __syncthreads();
        float s[KEYS / 8][4] = {};
        for (int n = 0; n < KEYS / 8; ++n)
            for (int c = 0; c < D / 16; ++c) {
                const __half* b = k_tile + (n * 8 + group) * K_PITCH + c * 16 + quad * 2;
                mma_16816(s[n], q_frag[c], word(b), word(b + 8));
            }
        for (int h = 0; h < 2; ++h) {
            const int visible = CAUSAL ? min(S, row0 + h * 8 + 1) : S;
            float top = row_max[h];
            for (int n = 0; n < KEYS / 8; ++n)
                for (int e = 2 * h; e < 2 * h + 2; ++e) {
                    const int key = key0 + n * 8 + quad * 2 + e % 2;
                    s[n][e] = key < visible ? s[n][e] * factor : neg_inf();
                    top = fmaxf(top, s[n][e]);
                }
            top = fmaxf(top, __shfl_xor_sync(~0u, top, 1));
            top = fmaxf(top, __shfl_xor_sync(~0u, top, 2));
            const float origin = top == neg_inf() ? 0.0f : top, shrink = exp2f(row_max[h] - origin);      // no inf - inf
            row_max[h] = top, row_sum[h] *= shrink;
            for (int n = 0; n < D / 8; ++n) acc[n][2 * h] *= shrink, acc[n][2 * h + 1] *= shrink;
            for (int n = 0; n < KEYS / 8; ++n)
                for (int e = 2 * h; e < 2 * h + 2; ++e) row_sum[h] += s[n][e] = exp2f(s[n][e] - origin);
        }
        for (int j = 0; j < KEYS / 16; ++j) {
            const unsigned p[4] = {pack_half2(s[2 * j][0], s[2 * j][1]), pack_half2(s[2 * j][2], s[2 * j][3]),
                                   pack_half2(s[2 * j + 1][0], s[2 * j + 1][1]), pack_half2(s[2 * j + 1][2], s[2 * j + 1][3])};
            for (int n = 0; n < D / 8; ++n) {
                const __half* b = v_tile + (n * 8 + group) * V_PITCH + j * 16 + quad * 2;
                mma_16816(acc[n], p, word(b), word(b + 8));
            }
        }
    }
    const size_t rows_before = (size_t(split) * gridDim.y + head) * S;
    for (int h = 0; h < 2; ++h) {
        float sum = row_sum[h] + __shfl_xor_sync(~0u, row_sum[h], 1);
        sum += __shfl_xor_sync(~0u, sum, 2);
        const int row = row0 + h * 8;
        if (row >= S) break;
        if (quad == 0) *reinterpret_cast<float2*>(part_stat + (rows_before + row) * 2) = make_float2(row_max[h], sum);
        for (int n = 0; n < D / 8; ++n)
            *reinterpret_cast<float2*>(part_out + (rows_before + row) * D + n * 8 + quad * 2) =
                make_float2(acc[n][2 * h], acc[n][2 * h + 1]);
    }
}

// One warp merges one row.
template <int D>
__global__ void __launch_bounds__(256)
combine_splits(const float* __restrict__ part_out, const float* __restrict__ part_stat, __half* __restrict__ out, int rows) {
    const int row = blockIdx.x * 8 + threadIdx.x / 32, lane = threadIdx.x % 32;
    if (row >= rows) return;
    float2 stat[SPLITS];      // maximum and sum; then weight and sum
    float top = neg_inf(), total = 0.0f;
    for (int i = 0; i < SPLITS; ++i) {
        stat[i] = *reinterpret_cast<const float2*>(part_stat + (size_t(i) * rows + row) * 2);
        top = fmaxf(top, stat[i].x);
    }
    for (int i = 0; i < SPLITS; ++i) {
        stat[i].x = exp2f(stat[i].x - top);      // 0 for a split that saw no key
        total += stat[i].x * stat[i].y;
    }
    for (int col = lane * 2; col < D; col += 64) {
        float2 mean = make_float2(0.0f, 0.0f);
        for (int i = 0; i < SPLITS; ++i) {
            const float2 part = *reinterpret_cast<const float2*>(part_out + (size_t(i) * rows + row) * D + col);
            mean.x += stat[i].x * part.x, mean.y += stat[i].x * part.y;
        }
        *reinterpret_cast<__half2*>(out + size_t(row) * D + col) = __floats2half2_rn(mean.x / total, mean.y / total);
    }
}
