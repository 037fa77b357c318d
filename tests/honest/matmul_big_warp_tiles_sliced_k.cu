/* evoengine
name: matmul_big_warp_tiles_sliced_k
precision: fp16
summary: mma.sync with 64x64 or 64x96 warp tiles, cp.async stages, fragments one step ahead; small grids split K among the warps of a block; 16-byte stores by quad transpose
tunables:
  TILE_M: [256, 128]         # block tile of cases that fill the device with it
  TILE_N: [128, 192, 256]
  TILE_K: [64, 32]
  STAGES: [4, 3]
  PIPED: [1, 0]              # 1: fragments are loaded one k16 step ahead, across tiles too
  SMALL_N: [64, 128]         # block tile 128 x SMALL_N of cases with few tiles
  SMALL_WM: [64, 32]         # rows of a warp there
  SLICES: [2, 4]             # slices of K among the warps there
let:
  LARGE: 1 if ceil_div(M, TILE_M) * ceil_div(N, TILE_N) >= SM_COUNT else 0
  MIDDLE: 1 if ceil_div(M, 128) * ceil_div(N, 128) >= 96 else 0
  BM: TILE_M if LARGE == 1 else 128
  BN: TILE_N if LARGE == 1 else (128 if MIDDLE == 1 else SMALL_N)
  WM: 64 if (LARGE == 1 or BN == 128) else SMALL_WM
  WN: 96 if BN == 192 else 64
  WK: 1 if LARGE == 1 else (2 if BN == 128 else SLICES)
  BK: TILE_K if LARGE == 1 else 32 * WK
  AHEAD: PIPED if WN == 64 else 0
  STAGE_SIZE: 2 * BK * (BM + BN)
  DEPTH: min(STAGES, MAX_SHARED_BYTES // STAGE_SIZE)
  SHARED: max(DEPTH * STAGE_SIZE, 4 * (WK - 1) * BM * BN)
  BLOCK: (BM // WM) * (BN // WN) * WK * 32
  GROUP: min(8, ceil_div(M, BM))
  CHECKS: (1 if M % BM != 0 else 0) + (2 if N % BN != 0 else 0) + (4 if K % BK != 0 else 0) + (8 if (K % 8 != 0 or N % 8 != 0) else 0)
require:
  - TILE_M * TILE_N <= 49152                                   # accumulators of eight warps
  - SMALL_N == 64 or (SMALL_WM == 64 and SLICES == 2)          # the other two do not matter there
  - (SMALL_WM // 16) % SLICES == 0                             # every slice finishes a part of the rows
  - DEPTH >= 2
  - SHARED <= MAX_SHARED_BYTES
launches:
  - kernel: tile_product<BM, BN, BK, WM, WN, WK, DEPTH, AHEAD, CHECKS>
    grid: ["GROUP", "ceil_div(N, BN)", "ceil_div(ceil_div(M, BM), GROUP)"]
    block: ["BLOCK"]
    shared: SHARED
    args: [a, b, out, M, N, K]
*/
// A block computes a BM x BN tile of the output with (BM/WM) x (BN/WN) x WK warps. A warp owns a WM x WN part of it and, of each stage of
// depth BK, every k of its slice (BK/WK deep). The WK partial sums are exchanged through shared memory once, at the end.
//
// Shared memory of a stage:
//   A: BM rows of BK halves; the 16-byte pieces of a row are permuted by XOR so that eight rows of one column lie in different banks.
//   B: panels of 64 columns: BK rows of 128 bytes, pieces permuted by XOR with the row.
// The columns of a warp: of each stretch of 32 * (warps along N) columns, the 32 that are its own.
//
// CHECKS: 1, 2, 4: M, N, K leave a remainder; 8: rows are not aligned to 16 bytes, everything is checked element by element.
#include <cuda_fp16.h>
#include <stdint.h>

__device__ __forceinline__ void copy_piece(uint32_t to, const __half* from) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;\n" :: "r"(to), "l"(from) : "memory");
}

__device__ __forceinline__ void copy_piece_or_zero(uint32_t to, const __half* from, bool inside) {
    const int bytes = inside ? 16 : 0;
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;\n" :: "r"(to), "l"(from), "r"(bytes) : "memory");
}

// Eight halves, the first `count` of them from memory, zeros after those.
__device__ __forceinline__ void gather_piece(uint32_t to, const __half* from, int count) {
    const unsigned short* bits = reinterpret_cast<const unsigned short*>(from);
    uint32_t word[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        uint32_t low = 0u, high = 0u;
        if (2 * i < count) low = bits[2 * i];
        if (2 * i + 1 < count) high = bits[2 * i + 1];
        word[i] = low | (high << 16);
    }
    asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};\n"
                 :: "r"(to), "r"(word[0]), "r"(word[1]), "r"(word[2]), "r"(word[3]) : "memory");
}

__device__ __forceinline__ void commit_copies() { asm volatile("cp.async.commit_group;\n" ::: "memory"); }

template <int PENDING>
__device__ __forceinline__ void wait_copies() { asm volatile("cp.async.wait_group %0;\n" :: "n"(PENDING) : "memory"); }

__device__ __forceinline__ void load_matrices(uint32_t (&r)[4], uint32_t address) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];\n"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(address) : "memory");
}

__device__ __forceinline__ void load_matrices_transposed(uint32_t (&r)[4], uint32_t address) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];\n"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(address) : "memory");
}

__device__ __forceinline__ void multiply_add(float (&c)[4], const uint32_t (&x)[4], uint32_t y0, uint32_t y1) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};\n"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y0), "r"(y1));
}

// Which pieces a thread brings into each stage, and from where.
template <int BM, int BN, int BK, int THREADS, int CHECKS>
struct Filler {
    static constexpr int PIECES = BK / 8;                 // pieces in a row of A
    static constexpr int PASS = THREADS / PIECES;         // rows of A that all threads bring at once: a multiple of 8
    static constexpr int STEP = THREADS / 8;              // rows of a panel of B that all threads bring at once
    static_assert(PASS % 8 == 0 && BM % PASS == 0, "rows of A do not divide");
    static_assert((STEP % BK == 0 || BK % STEP == 0) && (BK * BN / 8) % THREADS == 0, "rows of B do not divide");

    const __half* a;
    const __half* b;
    const __half* a_from;
    const __half* b_from;
    int M, N, K;
    int a_row, a_k, b_k, b_n;
    uint32_t a_to, b_to;

    __device__ __forceinline__ Filler(const __half* a_, const __half* b_, int M_, int N_, int K_, int block_row, int block_column)
        : a(a_), b(b_), M(M_), N(N_), K(K_) {
        const int thread = threadIdx.x;
        const int r = thread / PIECES, c = thread % PIECES;
        const int turn = BK == 32 ? (r >> 1) & 3 : r & 7;
        a_to = r * BK * 2 + (c ^ turn) * 16;
        a_row = block_row + r;
        a_k = c * 8;
        a_from = a + size_t(a_row) * K + a_k;
        const int p = thread % 8, q = thread / 8;
        const int k = q % BK, panel = q / BK;
        b_to = BM * BK * 2 + panel * (BK * 128) + k * 128 + (p ^ (k & 7)) * 16;
        b_k = k;
        b_n = block_column + panel * 64 + p * 8;
        b_from = b + size_t(b_k) * N + b_n;
    }

    // Brings the next tile into a stage.
    __device__ __forceinline__ void fill(uint32_t stage) {
#pragma unroll
        for (int j = 0; j < BM / PASS; ++j) {
            const __half* from = a_from + size_t(j * PASS) * K;
            const uint32_t to = stage + a_to + j * PASS * BK * 2;
            if constexpr ((CHECKS & 8) != 0) {
                gather_piece(to, from, a_row + j * PASS < M ? K - a_k : 0);
            } else if constexpr ((CHECKS & 5) != 0) {
                bool inside = true;
                if constexpr ((CHECKS & 1) != 0) inside = inside && a_row + j * PASS < M;
                if constexpr ((CHECKS & 4) != 0) inside = inside && a_k < K;
                copy_piece_or_zero(to, inside ? from : a, inside);
            } else {
                copy_piece(to, from);
            }
        }
#pragma unroll
        for (int j = 0; j < BK * BN / 8 / THREADS; ++j) {
            const int dk = (j * STEP) % BK, dp = (j * STEP) / BK;
            const __half* from = b_from + size_t(dk) * N + dp * 64;
            const uint32_t to = stage + b_to + dp * (BK * 128) + dk * 128;
            if constexpr ((CHECKS & 8) != 0) {
                gather_piece(to, from, b_k + dk < K ? N - (b_n + dp * 64) : 0);
            } else if constexpr ((CHECKS & 6) != 0) {
                bool inside = true;
                if constexpr ((CHECKS & 2) != 0) inside = inside && b_n + dp * 64 < N;
                if constexpr ((CHECKS & 4) != 0) inside = inside && b_k + dk < K;
                copy_piece_or_zero(to, inside ? from : b, inside);
            } else {
                copy_piece(to, from);
            }
        }
        a_from += BK;
        b_from += size_t(BK) * N;
        a_k += BK;
        b_k += BK;
    }
};

// Fragments of one k16 step: all of the warp's rows.
template <int MI, int BK>
__device__ __forceinline__ void load_rows(uint32_t (&fa)[MI][4], uint32_t address) {
#pragma unroll
    for (int i = 0; i < MI; ++i) load_matrices(fa[i], address + i * 16 * BK * 2);
}

// Fragments of one k16 step: the warp's 16 columns number jp.
template <int COLUMNS, int VARIANTS, int BK>
__device__ __forceinline__ void load_columns(uint32_t (&fb)[4], uint32_t stage, const uint32_t (&b_place)[VARIANTS], int step, int jp) {
    const int stretch = jp / 2 * COLUMNS;       // in units of 32 columns
    const int variant = (stretch & 1) * 2 + (jp & 1);
    load_matrices_transposed(fb, stage + b_place[variant] + step * (16 * 128) + stretch / 2 * (BK * 128));
}

template <int MI, int NJ>
__device__ __forceinline__ void multiply_columns(float (&sum)[MI][NJ][4], const uint32_t (&fa)[MI][4], const uint32_t (&fb)[4], int jp) {
#pragma unroll
    for (int i = 0; i < MI; ++i) {
        multiply_add(sum[i][2 * jp], fa[i], fb[0], fb[1]);
        multiply_add(sum[i][2 * jp + 1], fa[i], fb[2], fb[3]);
    }
}

__device__ __forceinline__ uint32_t pack_halves(float low, float high) {
    const __half2 pair = __floats2half2_rn(low, high);
    return *reinterpret_cast<const uint32_t*>(&pair);
}

// Writes 16 rows of a warp. `row` and `column` are those of this lane: the strip's first row + lane / 4, the first column + lane % 4 * 8.
template <int NJ, int COLUMNS, int CHECKS>
__device__ __forceinline__ void store_strip(const float (&sum)[NJ][4], __half* __restrict__ out, int row, int column, int M, int N, int lane) {
    const bool odd = (lane & 1) != 0, high = (lane & 2) != 0;
#pragma unroll
    for (int g = 0; g < NJ / 4; ++g) {
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            uint32_t v[4];
#pragma unroll
            for (int q = 0; q < 4; ++q) v[q] = pack_halves(sum[g * 4 + q][2 * h], sum[g * 4 + q][2 * h + 1]);
            // Transposes 4 x 4 words among the four lanes of a row: lane t then has all of columns 8 t to 8 t + 7.
#pragma unroll
            for (int p = 0; p < 4; p += 2) {
                const uint32_t got = __shfl_xor_sync(0xffffffffu, odd ? v[p] : v[p + 1], 1);
                v[p] = odd ? got : v[p];
                v[p + 1] = odd ? v[p + 1] : got;
            }
#pragma unroll
            for (int p = 0; p < 2; ++p) {
                const uint32_t got = __shfl_xor_sync(0xffffffffu, high ? v[p] : v[p + 2], 2);
                v[p] = high ? got : v[p];
                v[p + 2] = high ? v[p + 2] : got;
            }
            const int r = row + h * 8, c = column + g * COLUMNS * 32;
            if constexpr ((CHECKS & 8) != 0) {
                if (r < M) {
                    __half* place = out + size_t(r) * N + c;
#pragma unroll
                    for (int e = 0; e < 8; ++e)
                        if (c + e < N) place[e] = __ushort_as_half((unsigned short)((v[e / 2] >> (e % 2 * 16)) & 0xffffu));
                }
            } else {
                bool inside = true;
                if constexpr ((CHECKS & 1) != 0) inside = inside && r < M;
                if constexpr ((CHECKS & 2) != 0) inside = inside && c < N;
                if (inside) *reinterpret_cast<uint4*>(out + size_t(r) * N + c) = make_uint4(v[0], v[1], v[2], v[3]);
            }
        }
    }
}

template <int BM, int BN, int BK, int WM, int WN, int WK, int DEPTH, int AHEAD, int CHECKS>
__global__ void __launch_bounds__((BM / WM) * (BN / WN) * WK * 32)
tile_product(const __half* __restrict__ a, const __half* __restrict__ b, __half* __restrict__ out, int M, int N, int K) {
    constexpr int ROWS = BM / WM, COLUMNS = BN / WN;          // warps along M and N
    constexpr int PARTS = ROWS * COLUMNS;
    constexpr int THREADS = PARTS * WK * 32;
    constexpr int MI = WM / 16, NJ = WN / 8, NP = WN / 16;
    constexpr int STEPS = BK / 16 / WK;                       // k16 steps of a warp in each stage
    constexpr int STAGE_BYTES = 2 * BK * (BM + BN);
    constexpr int VARIANTS = COLUMNS == 1 ? 4 : 2;
    static_assert(COLUMNS == 1 || COLUMNS % 2 == 0, "columns of the warps lie in halves of panels");
    static_assert(STEPS >= 1 && (AHEAD == 0 || STEPS % 2 == 0), "two sets of fragments take turns");
    static_assert(MI % WK == 0 && WN % 32 == 0 && BN % 64 == 0, "tiles do not divide");

    extern __shared__ __align__(1024) unsigned char shared[];

    // Eight rows of blocks at a time, so that blocks that run together share much of their input.
    const int block_row = int(blockIdx.z * gridDim.x + blockIdx.x) * BM, block_column = int(blockIdx.y) * BN;
    if (block_row >= M) return;

    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int slice = WK == 1 ? 0 : warp / PARTS;
    const int part = WK == 1 ? warp : warp % PARTS;
    const int warp_m = part / COLUMNS, warp_n = part % COLUMNS;

    const uint32_t base = static_cast<uint32_t>(__cvta_generic_to_shared(shared));
    const uint32_t end = base + DEPTH * STAGE_BYTES;
    const int tiles = (K + BK - 1) / BK;

    Filler<BM, BN, BK, THREADS, CHECKS> filler(a, b, M, N, K, block_row, block_column);
#pragma unroll
    for (int t = 0; t < DEPTH - 1; ++t) {
        if (t < tiles) filler.fill(base + t * STAGE_BYTES);
        commit_copies();
    }

    // Where this lane's rows for ldmatrix lie in a stage.
    uint32_t a_place[STEPS], b_place[VARIANTS];
    {
        const int r = lane % 16, half_piece = lane / 16;
        const int turn = BK == 32 ? (r >> 1) & 3 : r & 7;
#pragma unroll
        for (int s = 0; s < STEPS; ++s)
            a_place[s] = (warp_m * WM + r) * (BK * 2) + (((slice * STEPS + s) * 2 + half_piece) ^ turn) * 16;
#pragma unroll
        for (int v = 0; v < VARIANTS; ++v)
            b_place[v] = BM * BK * 2 + warp_n / 2 * (BK * 128) + (slice * STEPS * 16 + r) * 128
                         + ((((warp_n & 1) * 4 + half_piece) ^ (v * 2)) ^ (r & 7)) * 16;
    }

    float sum[MI][NJ][4];
#pragma unroll
    for (int i = 0; i < MI; ++i)
#pragma unroll
        for (int j = 0; j < NJ; ++j)
#pragma unroll
            for (int e = 0; e < 4; ++e) sum[i][j][e] = 0.0f;

    uint32_t reading = base, writing = base + (DEPTH - 1) * STAGE_BYTES;

    if constexpr (AHEAD != 0) {
        uint32_t fa[2][MI][4], fb[2][NP][4];
        wait_copies<DEPTH - 2>();
        __syncthreads();
        load_rows<MI, BK>(fa[0], reading + a_place[0]);
#pragma unroll
        for (int jp = 0; jp < NP; ++jp) load_columns<COLUMNS, VARIANTS, BK>(fb[0][jp], reading, b_place, 0, jp);

        for (int t = 0; t < tiles - 1; ++t) {
#pragma unroll
            for (int s = 0; s < STEPS; ++s) {
                const int next = (s + 1) % STEPS;
                if (s == STEPS - 1) {
                    // All fragments of this tile are in registers; the next tile has to be there for everybody.
                    wait_copies<DEPTH - 2>();
                    __syncthreads();
                    reading += STAGE_BYTES;
                    if (reading == end) reading = base;
                }
                load_rows<MI, BK>(fa[(s + 1) & 1], reading + a_place[next]);
#pragma unroll
                for (int jp = 0; jp < NP; ++jp)
                    load_columns<COLUMNS, VARIANTS, BK>(fb[(s + 1) & 1][jp], reading, b_place, next, jp);
                if (s == 0) {
                    // Goes where the tile before this one was, which nobody reads since the last barrier.
                    if (t + DEPTH - 1 < tiles) filler.fill(writing);
                    commit_copies();
                    writing += STAGE_BYTES;
                    if (writing == end) writing = base;
                }
#pragma unroll
                for (int jp = 0; jp < NP; ++jp) multiply_columns<MI, NJ>(sum, fa[s & 1], fb[s & 1][jp], jp);
            }
        }
        // The last tile loads nothing beyond itself.
#pragma unroll
        for (int s = 0; s < STEPS; ++s) {
            if (s + 1 < STEPS) {
                load_rows<MI, BK>(fa[(s + 1) & 1], reading + a_place[(s + 1) % STEPS]);
#pragma unroll
                for (int jp = 0; jp < NP; ++jp)
                    load_columns<COLUMNS, VARIANTS, BK>(fb[(s + 1) & 1][jp], reading, b_place, s + 1, jp);
            }
#pragma unroll
            for (int jp = 0; jp < NP; ++jp) multiply_columns<MI, NJ>(sum, fa[s & 1], fb[s & 1][jp], jp);
        }
    } else {
        for (int t = 0; t < tiles; ++t) {
            wait_copies<DEPTH - 2>();
            __syncthreads();
            if (t + DEPTH - 1 < tiles) filler.fill(writing);
            commit_copies();
            writing += STAGE_BYTES;
            if (writing == end) writing = base;
#pragma unroll
            for (int s = 0; s < STEPS; ++s) {
                uint32_t fa[MI][4], fb[2][4];
                load_rows<MI, BK>(fa, reading + a_place[s]);
                load_columns<COLUMNS, VARIANTS, BK>(fb[0], reading, b_place, s, 0);
#pragma unroll
                for (int jp = 0; jp < NP; ++jp) {
                    if (jp + 1 < NP) load_columns<COLUMNS, VARIANTS, BK>(fb[(jp + 1) & 1], reading, b_place, s, jp + 1);
                    multiply_columns<MI, NJ>(sum, fa, fb[jp & 1], jp);
                }
            }
            reading += STAGE_BYTES;
            if (reading == end) reading = base;
        }
    }

    const int row = block_row + warp_m * WM + lane / 4;
    const int column = block_column + warp_n * 32 + lane % 4 * 8;

    if constexpr (WK == 1) {
#pragma unroll
        for (int i = 0; i < MI; ++i)
            store_strip<NJ, COLUMNS, CHECKS>(sum[i], out, row + i * 16, column, M, N, lane);
    } else {
        // Slice p finishes the p-th share of the warp tile's rows: everybody else hands it their sums of those.
        constexpr int SHARE = MI / WK;
        float4* exchange = reinterpret_cast<float4*>(shared);
        wait_copies<0>();
        __syncthreads();       // the stages are done with
#pragma unroll
        for (int p = 0; p < WK; ++p) {
            if (slice != p) {
                const int slot = slice < p ? slice : slice - 1;
                float4* to = exchange + (p * (WK - 1) + slot) * (SHARE * NJ * PARTS * 32) + part * 32 + lane;
#pragma unroll
                for (int i = 0; i < SHARE; ++i)
#pragma unroll
                    for (int j = 0; j < NJ; ++j)
                        to[(i * NJ + j) * (PARTS * 32)] = make_float4(sum[p * SHARE + i][j][0], sum[p * SHARE + i][j][1],
                                                                      sum[p * SHARE + i][j][2], sum[p * SHARE + i][j][3]);
            }
        }
        __syncthreads();
#pragma unroll
        for (int p = 0; p < WK; ++p) {
            if (slice == p) {
#pragma unroll
                for (int slot = 0; slot < WK - 1; ++slot) {
                    const float4* from = exchange + (p * (WK - 1) + slot) * (SHARE * NJ * PARTS * 32) + part * 32 + lane;
#pragma unroll
                    for (int i = 0; i < SHARE; ++i)
#pragma unroll
                        for (int j = 0; j < NJ; ++j) {
                            const float4 other = from[(i * NJ + j) * (PARTS * 32)];
                            sum[p * SHARE + i][j][0] += other.x;
                            sum[p * SHARE + i][j][1] += other.y;
                            sum[p * SHARE + i][j][2] += other.z;
                            sum[p * SHARE + i][j][3] += other.w;
                        }
                }
#pragma unroll
                for (int i = 0; i < SHARE; ++i)
                    store_strip<NJ, COLUMNS, CHECKS>(sum[p * SHARE + i], out, row + (p * SHARE + i) * 16, column, M, N, lane);
            }
        }
    }
}
