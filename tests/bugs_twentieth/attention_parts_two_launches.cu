/* evoengine
name: attention_parts_two_launches
precision: fp16
summary: attention on mma.sync whose keys are shared out among blocks; a second launch merges the parts
tunables:
  TILE_KEYS: [32, 16, 64]        # keys of one step
  PARTS: [3, 1, 2, 4]            # blocks that share the keys of a query row
let:
  CHUNK: round_up(ceil_div(S, PARTS), TILE_KEYS)
  ROWS: B*H*S
scratch:
  part_out: {dtype: float32, shape: [PARTS, B, H, S, D]}
  part_stat: {dtype: float32, shape: [PARTS, B, H, S, 2]}
require: [8*TILE_KEYS*(D + 8) <= MAX_SHARED_BYTES]
launches:
  - kernel: attend_part<D, causal>
    grid: ["ceil_div(S, 64)", B*H, PARTS]
    block: [128]
    shared: 8*TILE_KEYS*(D + 8)
    args: [q, k, v, part_out, part_stat, S, CHUNK, scale]
  - kernel: merge_parts<D>
    grid: ["ceil_div(ROWS, 4)"]
    block: [128]
    args: [part_out, part_stat, out, ROWS]
*/
// A warp owns 16 query rows, kept in registers from the start, and the block's four warps walk along one chunk of the
// keys. What they find (unnormalised output, maximum, sum) goes to scratch memory, and a warp a row puts it together.
// Loops over registers have few and constant steps, so that the compiler unrolls them unasked.
#include <cuda_fp16.h>

__device__ __forceinline__ float minus_inf() { return __int_as_float(0xff800000); }

__device__ __forceinline__ void copy_async(half* to, const half* from, bool inside) {
    const unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(to));
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(address), "l"(from), "r"(inside ? 16 : 0) : "memory");
}
__device__ __forceinline__ void mma_16816(float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
__device__ __forceinline__ unsigned pack_halves(float low, float high) {
    const half2 both = __floats2half2_rn(low, high);
    return *reinterpret_cast<const unsigned*>(&both);
}

template <int D, bool CAUSAL> __global__ void __launch_bounds__(128)
attend_part(const half* __restrict__ q, const half* __restrict__ k, const half* __restrict__ v, float* __restrict__ part_out,
            float* __restrict__ part_stat, int S, int chunk, float scale) {
    constexpr int PITCH = D + 8, TILE = TILE_KEYS * PITCH;
    extern __shared__ __align__(16) half tiles[];            // [2 stages][K, V][TILE_KEYS][PITCH]
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    const int group = lane >> 2, pair = (lane & 3) * 2;      // row and first column of this lane in an mma result
    const int row0 = blockIdx.x * 64 + warp * 16 + group;    // the other row of the lane is row0 + 8
    const size_t head = size_t(blockIdx.y) * S * D;
    const int key_begin = blockIdx.z * chunk;
    const int last_visible = CAUSAL ? min(S, int(blockIdx.x) * 64 + 64) : S;
    const int key_end = min(key_begin + chunk, last_visible);
    const int steps = key_end > key_begin ? (key_end - key_begin + TILE_KEYS - 1) / TILE_KEYS : 0;

    unsigned q_frag[D / 16][4];
    for (int i = 0; i < D / 4; ++i) {
        const int row = row0 + (i & 1) * 8, column = i / 4 * 16 + pair + (i >> 1 & 1) * 8;
        q_frag[i / 4][i & 3] = row < S ? *reinterpret_cast<const unsigned*>(q + head + size_t(row) * D + column) : 0u;
    }

    auto start_step = [&](int step) {
        if (step < steps) {
            half* k_tile = tiles + (step & 1) * 2 * TILE;
            for (int i = threadIdx.x; i < TILE_KEYS * D / 8; i += 128) {
                const int row = i / (D / 8), column = i % (D / 8) * 8, key = key_begin + step * TILE_KEYS + row;
                const size_t from = key < key_end ? head + size_t(key) * D + column : 0;
                copy_async(k_tile + row * PITCH + column, k + from, key < key_end);
                copy_async(k_tile + TILE + row * PITCH + column, v + from, key < key_end);
            }
        }
        asm volatile("cp.async.commit_group;" ::: "memory");
    };

    const float scale_log2 = scale * 1.4426950408889634f;    // exp2 takes the place of exp
    float o[D / 8][4] = {}, row_max[2] = {minus_inf(), minus_inf()}, row_sum[2] = {};
    start_step(0);
    for (int step = 0; step < steps; ++step) {
        start_step(step + 1);
        asm volatile("cp.async.wait_group 1;" ::: "memory");
        __syncthreads();             // the copies of all threads for this step have arrived
        const half* k_tile = tiles + (step & 1) * 2 * TILE;
        const half* v_tile = k_tile + TILE;
        const int first_key = key_begin + step * TILE_KEYS;

        float s[TILE_KEYS / 8][4] = {};
        for (int n = 0; n < TILE_KEYS / 8; ++n)
            for (int d = 0; d < D / 16; ++d) {
                const half* from = k_tile + (n * 8 + group) * PITCH + d * 16 + pair;
                mma_16816(s[n], q_frag[d], *reinterpret_cast<const unsigned*>(from), *reinterpret_cast<const unsigned*>(from + 8));
            }
        for (int h = 0; h < 2; ++h) {                         // rows row0 and row0 + 8
            float top = row_max[h];
            for (int i = 0; i < TILE_KEYS / 4; ++i) {
                const int n = i / 2, e = h * 2 + i % 2, key = first_key + n * 8 + pair + i % 2;
                s[n][e] = key < S && (!CAUSAL || key <= row0 + h * 8) ? s[n][e] * scale_log2 : minus_inf();
                top = fmaxf(top, s[n][e]);
            }
            top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, 1));
            top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, 2));
            const float base = top == minus_inf() ? 0.0f : top;      // no key of this chunk is visible to the row yet
            const float shrink = exp2f(row_max[h] - base);
            row_max[h] = top;
            row_sum[h] *= shrink;
            for (int n = 0; n < D / 8; ++n) o[n][h * 2] *= shrink, o[n][h * 2 + 1] *= shrink;
            for (int n = 0; n < TILE_KEYS / 8; ++n)
                for (int e = h * 2; e < h * 2 + 2; ++e) row_sum[h] += s[n][e] = exp2f(s[n][e] - base);
        }
        for (int j = 0; j < TILE_KEYS / 16; ++j) {
            const unsigned p[4] = {pack_halves(s[2 * j][0], s[2 * j][1]), pack_halves(s[2 * j][2], s[2 * j][3]),
                                   pack_halves(s[2 * j + 1][0], s[2 * j + 1][1]), pack_halves(s[2 * j + 1][2], s[2 * j + 1][3])};
            for (int n = 0; n < D / 8; ++n) {
                unsigned b0, b1;
                const unsigned from = static_cast<unsigned>(__cvta_generic_to_shared(v_tile + (j * 16 + (lane & 15)) * PITCH + n * 8));
                asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];" : "=r"(b0), "=r"(b1) : "r"(from) : "memory");
                mma_16816(o[n], p, b0, b1);
            }
        }
        __syncthreads();             // the next step but one is copied over these tiles
    }
    for (int h = 0; h < 2; ++h) {
        float sum = row_sum[h] + __shfl_xor_sync(0xffffffffu, row_sum[h], 1);
        sum += __shfl_xor_sync(0xffffffffu, sum, 2);
        const int row = row0 + h * 8;
        if (row >= S) continue;
        const size_t slot = (size_t(blockIdx.z) * gridDim.y + blockIdx.y) * S + row;
        if (pair == 0) *reinterpret_cast<float2*>(part_stat + slot * 2) = make_float2(row_max[h], sum);
        for (int n = 0; n < D / 8; ++n)
            *reinterpret_cast<float2*>(part_out + slot * D + n * 8 + pair) = make_float2(o[n][h * 2], o[n][h * 2 + 1]);
    }
}

template <int D> __global__ void __launch_bounds__(128)
merge_parts(const float* __restrict__ part_out, const float* __restrict__ part_stat, half* __restrict__ out, int rows) {
    const int row = blockIdx.x * 4 + threadIdx.x / 32, lane = threadIdx.x % 32;
    if (row >= rows) return;     // the whole warp
    float top = minus_inf(), sum = 0.0f, total[D / 32] = {};
    for (int part = 0; part < PARTS; ++part) top = fmaxf(top, part_stat[(size_t(part) * rows + row) * 2]);
    for (int part = 0; part < PARTS; ++part) {
        const size_t slot = size_t(part) * rows + row;
        const float weight = exp2f(part_stat[slot * 2] - top);
        sum += weight * part_stat[slot * 2 + 1];
        for (int i = 0; i < D / 32; ++i) total[i] += weight * part_out[slot * D + i * 32 + lane];
    }
    for (int i = 0; i < D / 32; ++i) out[size_t(row) * D + i * 32 + lane] = __float2half(total[i] / sum);
}
