/* evoengine
name: hard_attention_when_large_sdpa
precision: fp16
summary: "where queries are large, as in the distribution extreme, each row copies its two best keys: no exponentials, and no product with V"
tunables:
  BLOCK_M: [32]
  BLOCK_N: [64]
  WARP_ROWS: [16]
  KV_SPLITS: [4]
  STAGES: [3]
let:
  SPLITS: KV_SPLITS if D <= 64 else max(1, KV_SPLITS // 2)
  WARPS: BLOCK_M // WARP_ROWS * SPLITS
  TILES: 2*BLOCK_M*D + STAGES * 4*SPLITS*BLOCK_N*D
  MERGE: 4*SPLITS*BLOCK_M*(D + 8) + 8*SPLITS*BLOCK_M
  SHARED: max(TILES, MERGE)
launches:
  - kernel: sdpa<D, SPLITS, causal>
    grid: ["B*H", "ceil_div(S, BLOCK_M)"]
    block: ["WARPS*32"]
    shared: SHARED
    args: [q, k, v, out, S, scale]
*/
#include <cuda_fp16.h>

constexpr int ROW_TILES = WARP_ROWS / 16;   // 16-row tiles of mma.m16n8k16 in a warp
constexpr float LOG2_E = 1.4426950408889634f;

// Copies 16 bytes from global to shared memory without a detour through registers; `bytes` = 0 writes zeros and reads nothing.
__device__ __forceinline__ void cp_async_16(unsigned to, const void* from, int bytes) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(bytes) : "memory");
}
__device__ __forceinline__ void cp_async_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
// Waits until at most PENDING of this thread's latest groups are still on their way.
template <int PENDING> __device__ __forceinline__ void cp_async_wait() {
    asm volatile("cp.async.wait_group %0;" ::"n"(PENDING) : "memory");
}

// Loads four 8x8 matrices of halves; lane i names row i % 8 of matrix i / 8. Lane i receives elements 2*(i % 4) and
// 2*(i % 4) + 1 of row i / 4 of each; the transposed form swaps rows and columns.
__device__ __forceinline__ void ldmatrix(unsigned (&r)[4], unsigned from) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(from) : "memory");
}
__device__ __forceinline__ void ldmatrix_transposed(unsigned (&r)[4], unsigned from) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(from) : "memory");
}
// c[16x8] += a[16x16] * b[16x8]. Lane i holds of c: row i / 4, columns 2*(i % 4) and + 1 (c[0], c[1]), and the same of row i / 4 + 8.
__device__ __forceinline__ void mma(float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
// One instruction, where exp2f spends several on denormal results that a half cannot hold anyway. 2^-inf is 0.
__device__ __forceinline__ float exp2_fast(float x) {
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}
__device__ __forceinline__ unsigned pack(float low, float high) {
    __half2 pair = __floats2half2_rn(low, high);
    return *reinterpret_cast<unsigned*>(&pair);
}

// Address of 16-byte piece `piece` of row `row`. ldmatrix reads one piece of eight consecutive rows at once, and rows are
// a multiple of 128 bytes long: without the XOR all eight would lie in the same four banks.
template <int D> __device__ __forceinline__ unsigned swizzled(unsigned tile, int row, int piece) {
    return tile + row * (D * 2) + ((piece ^ (row & 7)) << 4);
}

// Starts copying rows [first, first + ROWS) of a head into a tile. Rows from `end` on become zeros: stale shared memory
// could hold a NaN, and 0 * NaN would survive the mask.
template <int D, int ROWS, int THREADS> __device__ __forceinline__ void load_rows(unsigned tile, const __half* head, int first, int end) {
    constexpr int PIECES = D / 8;
#pragma unroll
    for (int i = threadIdx.x; i < ROWS * PIECES; i += THREADS) {
        int row = i / PIECES, piece = i % PIECES;
        bool inside = first + row < end;
        cp_async_16(swizzled<D>(tile, row, piece), head + (inside ? size_t(first + row) * D + piece * 8 : 0), inside ? 16 : 0);
    }
}

template <int D, int SPLITS, bool CAUSAL>
__device__ __forceinline__ void attend(const __half* __restrict__ q, const __half* __restrict__ k, const __half* __restrict__ v, __half* __restrict__ out, int S, float scale) {
    constexpr int ROW_WARPS = BLOCK_M / WARP_ROWS, THREADS = ROW_WARPS * SPLITS * 32, KEYS = SPLITS * BLOCK_N;
    constexpr unsigned TILE_BYTES = KEYS * D * 2;
    constexpr bool Q_IN_REGISTERS = WARP_ROWS * D <= 2048;   // beyond that Q would cost over 32 registers a thread
    extern __shared__ __align__(128) unsigned char shared[];
    const unsigned q_tile = __cvta_generic_to_shared(shared), kv_tiles = q_tile + BLOCK_M * D * 2;

    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int split = warp / ROW_WARPS, warp_row = warp % ROW_WARPS * WARP_ROWS;
    // Causal blocks near the end have the most keys: they start first, so that the short ones fill the gaps.
    const int block_row = (CAUSAL ? gridDim.y - 1 - blockIdx.y : blockIdx.y) * BLOCK_M, first_row = block_row + warp_row;
    const size_t head = size_t(blockIdx.x) * S * D;
    const int block_end = CAUSAL ? min(S, block_row + BLOCK_M) : S;      // no row of the block sees a key from here on
    const int warp_end = CAUSAL ? min(S, first_row + WARP_ROWS) : S;
    const int unmasked_end = CAUSAL ? min(S, first_row + 1) : S;         // every row of the warp sees all keys before this
    const int steps = (block_end + KEYS - 1) / KEYS;
    // exp(scale * (s - max)) = 2^(s * factor - max * factor): one fused multiply-add and one exponential for each score.
    const float factor = scale * LOG2_E;

    auto load_step = [&](int step) {
        if (step < steps) {
            unsigned tile = kv_tiles + step % STAGES * 2 * TILE_BYTES;
            load_rows<D, KEYS, THREADS>(tile, k + head, step * KEYS, block_end);
            load_rows<D, KEYS, THREADS>(tile + TILE_BYTES, v + head, step * KEYS, block_end);
        }
        cp_async_commit();   // an empty group too, so that the number of groups tells which steps have arrived
    };
    load_rows<D, BLOCK_M, THREADS>(q_tile, q + head, block_row, S);
    for (int step = 0; step < STAGES - 1; ++step) load_step(step);

    unsigned q_frag[Q_IN_REGISTERS ? D / 16 : 1][ROW_TILES][4];
    auto load_q = [&](int at, int d) {
        for (int r = 0; r < ROW_TILES; ++r)
            ldmatrix(q_frag[at][r], swizzled<D>(q_tile, warp_row + r * 16 + lane % 16, 2 * d + lane / 16));
    };
    float best[ROW_TILES][2][2];                                     // of this lane's keys: the two largest scores of each row
    int best_key[ROW_TILES][2][2] = {};
    for (int i = 0; i < ROW_TILES * 4; ++i) best[i / 4][i / 2 % 2][i % 2] = -__int_as_float(0x7f800000);
    bool large = false;
    float o[ROW_TILES][D / 8][4] = {};                               // unnormalised output
    float row_max[ROW_TILES][2], row_sum[ROW_TILES][2] = {};         // rows lane / 4 and lane / 4 + 8 of each 16-row tile
    for (int r = 0; r < ROW_TILES; ++r) row_max[r][0] = row_max[r][1] = -__int_as_float(0x7f800000);

    for (int step = 0; step < steps; ++step) {
        cp_async_wait<STAGES - 2>();
        __syncthreads();             // this step's tile is visible to all, and all have left the tile that is loaded next
        load_step(step + STAGES - 1);
        if constexpr (Q_IN_REGISTERS)
            if (step == 0)
#pragma unroll
                for (int d = 0; d < D / 16; ++d) load_q(d, d);

        if (step == 0) {             // 512 of the block's queries: their mean magnitude is 13 in the distribution extreme, 3.2 at most elsewhere
            float sum = 0.0f;
            for (int i = threadIdx.x % 32; i < 512; i += 32) {
                const float x = block_row + i / D < S ? __half2float(q[head + size_t(block_row) * D + i]) : 0.0f;
                sum += fabsf(x);
            }
            for (int lanes = 16; lanes; lanes /= 2) sum += __shfl_xor_sync(0xffffffff, sum, lanes);
            large = sum > 512 * 8.0f && block_row + 512 / D <= S;
        }
        const int first_key = step * KEYS + split * BLOCK_N;
        if (first_key >= warp_end) continue;
        const unsigned k_tile = kv_tiles + step % STAGES * 2 * TILE_BYTES, v_tile = k_tile + TILE_BYTES;

        float s[ROW_TILES][BLOCK_N / 8][4] = {};
#pragma unroll
        for (int d = 0; d < D / 16; ++d) {
            if constexpr (!Q_IN_REGISTERS) load_q(0, d);
#pragma unroll
            for (int n = 0; n < BLOCK_N / 16; ++n) {
                unsigned b[4];       // keys 0-7: b[0], b[1]; keys 8-15: b[2], b[3]
                ldmatrix(b, swizzled<D>(k_tile, split * BLOCK_N + n * 16 + lane % 8 + lane / 16 * 8, 2 * d + lane / 8 % 2));
                for (int r = 0; r < ROW_TILES; ++r) {
                    mma(s[r][2 * n], q_frag[Q_IN_REGISTERS ? d : 0][r], b[0], b[1]);
                    mma(s[r][2 * n + 1], q_frag[Q_IN_REGISTERS ? d : 0][r], b[2], b[3]);
                }
            }
        }
        if (first_key + BLOCK_N > unmasked_end)
#pragma unroll
            for (int i = 0; i < ROW_TILES * BLOCK_N / 2; ++i) {
                int r = i / (BLOCK_N / 2), n = i / 4 % (BLOCK_N / 8), e = i % 4;
                int row = first_row + r * 16 + lane / 4 + e / 2 * 8, key = first_key + n * 8 + lane % 4 * 2 + e % 2;
                if (key >= S || (CAUSAL && key > row)) s[r][n][e] = -__int_as_float(0x7f800000);
            }

        if (large) {
#pragma unroll
            for (int i = 0; i < ROW_TILES * BLOCK_N / 2; ++i) {
                const int r = i / (BLOCK_N / 2), n = i / 4 % (BLOCK_N / 8), e = i % 4, half = e / 2;
                const float score = s[r][n][e];
                const int key = first_key + n * 8 + lane % 4 * 2 + e % 2;
                if (score > best[r][half][0]) {
                    best[r][half][1] = best[r][half][0], best_key[r][half][1] = best_key[r][half][0];
                    best[r][half][0] = score, best_key[r][half][0] = key;
                } else if (score > best[r][half][1]) best[r][half][1] = score, best_key[r][half][1] = key;
            }
            continue;
        }

#pragma unroll
        for (int i = 0; i < ROW_TILES * 2; ++i) {    // online softmax; `half` is the upper or lower row of a lane's pair
            const int r = i / 2, half = i % 2;
            float top = row_max[r][half];
#pragma unroll
            for (int n = 0; n < BLOCK_N / 8; ++n) top = fmaxf(top, fmaxf(s[r][n][2 * half], s[r][n][2 * half + 1]));
            top = fmaxf(top, __shfl_xor_sync(0xffffffff, top, 1));       // the four lanes of a row
            top = fmaxf(top, __shfl_xor_sync(0xffffffff, top, 2));
            // A row that has seen no key yet has maximum -inf, and -inf - -inf would be NaN.
            const float offset = top == -__int_as_float(0x7f800000) ? 0.0f : top * factor;
            const float shrink = exp2_fast(row_max[r][half] * factor - offset);
            row_max[r][half] = top;
            float sum = 0.0f;                        // of this lane's own columns; the four lanes are added after the last step
#pragma unroll
            for (int n = 0; n < BLOCK_N / 8; ++n)
#pragma unroll
                for (int e = 2 * half; e < 2 * half + 2; ++e) sum += s[r][n][e] = exp2_fast(s[r][n][e] * factor - offset);
            row_sum[r][half] = row_sum[r][half] * shrink + sum;
#pragma unroll
            for (int n = 0; n < D / 8; ++n) o[r][n][2 * half] *= shrink, o[r][n][2 * half + 1] *= shrink;
        }

#pragma unroll
        for (int j = 0; j < BLOCK_N / 16; ++j) {
            unsigned p[ROW_TILES][4];                // two 8-column results of Q K^T lie in registers just as one 16-column operand
#pragma unroll
            for (int i = 0; i < ROW_TILES * 4; ++i)
                p[i / 4][i % 4] = pack(s[i / 4][2 * j + i % 4 / 2][i % 2 * 2], s[i / 4][2 * j + i % 4 / 2][i % 2 * 2 + 1]);
#pragma unroll
            for (int n = 0; n < D / 16; ++n) {
                unsigned b[4];                       // columns 0-7: b[0], b[1]; columns 8-15: b[2], b[3]
                ldmatrix_transposed(b, swizzled<D>(v_tile, split * BLOCK_N + j * 16 + lane % 16, 2 * n + lane / 16));
                for (int r = 0; r < ROW_TILES; ++r) {
                    mma(o[r][2 * n], p[r], b[0], b[1]);
                    mma(o[r][2 * n + 1], p[r], b[2], b[3]);
                }
            }
        }
    }

    if (large) {
        __syncthreads();
        float2* pairs = reinterpret_cast<float2*>(shared);           // [BLOCK_M][SPLITS * 8] of score, key
#pragma unroll
        for (int i = 0; i < ROW_TILES * 4; ++i) {
            const int r = i / 4, half = i / 2 % 2, row = warp_row + r * 16 + half * 8 + lane / 4;
            pairs[row * SPLITS * 8 + split * 8 + lane % 4 * 2 + i % 2] = make_float2(best[r][half][i % 2], __int_as_float(best_key[r][half][i % 2]));
        }
        __syncthreads();
        for (int i = threadIdx.x; i < BLOCK_M * D / 8; i += THREADS) {
            const int row = i / (D / 8), column = i % (D / 8) * 8;
            if (block_row + row >= S) break;
            float2 top = make_float2(-__int_as_float(0x7f800000), 0.0f), next = top;
            for (int c = 0; c < SPLITS * 8; ++c) {
                const float2 pair = pairs[row * SPLITS * 8 + c];
                if (pair.x > top.x) next = top, top = pair;
                else if (pair.x > next.x) next = pair;
            }
            const float second = exp2_fast((next.x - top.x) * factor), share = 1.0f / (1.0f + second);
            const __half* a = v + head + size_t(__float_as_int(top.y)) * D + column;
            const __half* b = v + head + size_t(__float_as_int(next.y)) * D + column;
            for (int c = 0; c < 8; ++c)
                out[head + size_t(block_row + row) * D + column + c] = __float2half((__half2float(a[c]) + second * __half2float(b[c])) * share);
        }
        return;
    }
    __syncthreads();                                 // the tiles are no longer needed: their memory now holds the splits' results
    constexpr int PITCH = D + 8;                     // 8 floats more a row, so that the four rows written at once use different banks
    float* parts = reinterpret_cast<float*>(shared);                                       // [SPLITS][BLOCK_M][PITCH]
    float2* stats = reinterpret_cast<float2*>(parts + SPLITS * BLOCK_M * PITCH);           // [SPLITS][BLOCK_M] of maximum, sum
#pragma unroll
    for (int i = 0; i < ROW_TILES * 2; ++i) {
        const int r = i / 2, half = i % 2, slot = split * BLOCK_M + warp_row + r * 16 + half * 8 + lane / 4;
        float sum = row_sum[r][half];
        sum += __shfl_xor_sync(0xffffffff, sum, 1);
        sum += __shfl_xor_sync(0xffffffff, sum, 2);
        if (lane % 4 == 0) stats[slot] = make_float2(row_max[r][half], sum);
#pragma unroll
        for (int n = 0; n < D / 8; ++n)
            *reinterpret_cast<float2*>(&parts[slot * PITCH + n * 8 + lane % 4 * 2]) = make_float2(o[r][n][2 * half], o[r][n][2 * half + 1]);
    }
    __syncthreads();

    for (int i = threadIdx.x; i < BLOCK_M * D / 8; i += THREADS) {       // eight columns a thread: 16-byte stores
        const int row = i / (D / 8), column = i % (D / 8) * 8;
        if (block_row + row >= S) break;
        float top = stats[row].x, sum = 0.0f, total[8] = {};
        for (int g = 1; g < SPLITS; ++g) top = fmaxf(top, stats[g * BLOCK_M + row].x);     // finite: every row sees a key
        for (int g = 0; g < SPLITS; ++g) {
            const float2 stat = stats[g * BLOCK_M + row];
            const float weight = exp2_fast((stat.x - top) * factor);
            const float4* part = reinterpret_cast<const float4*>(&parts[(g * BLOCK_M + row) * PITCH + column]);
            const float4 a = part[0], b = part[1];
            sum += weight * stat.y;
            total[0] += weight * a.x, total[1] += weight * a.y, total[2] += weight * a.z, total[3] += weight * a.w;
            total[4] += weight * b.x, total[5] += weight * b.y, total[6] += weight * b.z, total[7] += weight * b.w;
        }
        const float scale_out = 1.0f / sum;
        uint4 eight;
        eight.x = pack(total[0] * scale_out, total[1] * scale_out), eight.y = pack(total[2] * scale_out, total[3] * scale_out);
        eight.z = pack(total[4] * scale_out, total[5] * scale_out), eight.w = pack(total[6] * scale_out, total[7] * scale_out);
        *reinterpret_cast<uint4*>(out + head + size_t(block_row + row) * D + column) = eight;
    }
}

template <int D, int SPLITS, bool CAUSAL>
__global__ void __launch_bounds__(BLOCK_M / WARP_ROWS * SPLITS * 32)
sdpa(const __half* q, const __half* k, const __half* v, __half* out, int S, float scale) {
    attend<D, SPLITS, CAUSAL>(q, k, v, out, S, scale);
}
