/* evoengine
name: harbor_stages
precision: fp16
summary: mma.sync on padded tiles, a ring of cp.async stages, blocks walked in groups of tile rows for the sake of L2
tunables:
  BM: [64, 128]        # rows of a block's tile
  BN: [64, 128]        # columns of it
  STAGES: [3, 2, 4]
  GROUP: [4, 8, 1]     # tile rows that are walked together
let:
  TILES_M: ceil_div(M, BM)
  TILES_N: ceil_div(N, BN)
  WIDE_A: 1 if K % 8 == 0 else 0
  WIDE_B: 1 if N % 8 == 0 else 0
  BYTES: 2*STAGES*(BM*(32 + 8) + 32*(BN + 8))
require:
  - BYTES <= MAX_SHARED_BYTES
launches:
  - kernel: "harbor<WIDE_A, WIDE_B>"
    grid: [TILES_M*TILES_N]
    block: [128]
    shared: BYTES
    args: [a, b, out, M, N, K, TILES_M, TILES_N]
*/
// out[M, N] = a[M, K] * b[K, N]. Four warps in a 2 x 2 square own a BM x BN tile; each holds its quarter in registers.
// The ring has STAGES slots, of which STAGES - 1 are on their way or being multiplied, so one barrier a step is enough.
#include <cuda_fp16.h>

namespace {

constexpr int BK = 32;
constexpr int THREADS = 128;
constexpr int WM = BM / 2, WN = BN / 2;            // quarter of a warp
constexpr int FRAGS_M = WM / 16, FRAGS_N = WN / 8;
constexpr int LDA = BK + 8, LDB = BN + 8;          // 16 bytes of padding keep ldmatrix free of conflicts

struct Stage {
    __half a[BM * LDA];
    __half b[BK * LDB];
};
static_assert(sizeof(Stage) % 16 == 0, "stages must stay aligned for 16-byte copies");

__device__ __forceinline__ unsigned shared_address(const void* p) {
    return static_cast<unsigned>(__cvta_generic_to_shared(p));
}

__device__ __forceinline__ void copy16(void* to, const void* from, bool inside) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(to)), "l"(from), "r"(inside ? 16 : 0) : "memory");
}
__device__ __forceinline__ void commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int LEFT> __device__ __forceinline__ void wait() { asm volatile("cp.async.wait_group %0;" ::"n"(LEFT) : "memory"); }

// ROWS x COLS elements from (row0, col0) of a row-major [rows, cols] matrix; what lies outside becomes zero.
template <int ROWS, int COLS, int LD, int WIDE>
__device__ __forceinline__ void bring(__half* tile, const __half* matrix, int rows, int cols, int row0, int col0) {
    constexpr int PER_ROW = COLS / 8;
#pragma unroll
    for (int i = threadIdx.x; i < ROWS * PER_ROW; i += THREADS) {
        const int r = i / PER_ROW, c = i % PER_ROW * 8;
        const int row = row0 + r, col = col0 + c;
        __half* to = tile + r * LD + c;
        if (WIDE) {
            const bool inside = row < rows && col < cols;
            copy16(to, inside ? matrix + size_t(row) * cols + col : matrix, inside);
        } else {
#pragma unroll
            for (int e = 0; e < 8; ++e) {
                const bool inside = row < rows && col + e < cols;
                to[e] = inside ? matrix[size_t(row) * cols + col + e] : __half(0.0f);
            }
        }
    }
}

__device__ __forceinline__ void load_a_fragment(unsigned (&r)[4], const __half* from) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(shared_address(from)) : "memory");
}
// b lies with n running along the row, the fragment wants k there.
__device__ __forceinline__ void load_b_fragments(unsigned (&r)[4], const __half* from) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(shared_address(from)) : "memory");
}
__device__ __forceinline__ void multiply(float (&d)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

__device__ __forceinline__ void multiply_stage(float (&acc)[FRAGS_M][FRAGS_N][4], const Stage& stage, int warp_row, int warp_col, int lane) {
    const int r = lane % 16, c = lane / 16 * 8;    // the row of 16 bytes that this lane names to ldmatrix
#pragma unroll
    for (int k = 0; k < BK; k += 16) {
        unsigned fa[FRAGS_M][4];
#pragma unroll
        for (int i = 0; i < FRAGS_M; ++i) load_a_fragment(fa[i], &stage.a[(warp_row + i * 16 + r) * LDA + k + c]);
#pragma unroll
        for (int j = 0; j < FRAGS_N; j += 2) {
            unsigned fb[4];
            load_b_fragments(fb, &stage.b[(k + r) * LDB + warp_col + j * 8 + c]);
#pragma unroll
            for (int i = 0; i < FRAGS_M; ++i) {
                multiply(acc[i][j], fa[i], fb[0], fb[1]);
                multiply(acc[i][j + 1], fa[i], fb[2], fb[3]);
            }
        }
    }
}

__device__ __forceinline__ void put_pair(__half* out, int M, int N, int row, int col, float x, float y) {
    if (row >= M || col >= N) return;
    __half* to = out + size_t(row) * N + col;
    if (N % 2 == 0) {
        *reinterpret_cast<__half2*>(to) = __floats2half2_rn(x, y);
    } else {
        to[0] = __float2half(x);
        if (col + 1 < N) to[1] = __float2half(y);
    }
}

}  // namespace

template <int WIDE_A, int WIDE_B>
__global__ void __launch_bounds__(THREADS)
harbor(const __half* __restrict__ a, const __half* __restrict__ b, __half* __restrict__ out, int M, int N, int K, int tiles_m, int tiles_n) {
    extern __shared__ __align__(16) unsigned char raw[];
    Stage* ring = reinterpret_cast<Stage*>(raw);

    // Consecutive blocks go down GROUP tile rows before they step to the next tile column.
    const int per_group = GROUP * tiles_n;
    const int first_tile = blockIdx.x / per_group * GROUP;
    const int height = min(GROUP, tiles_m - first_tile);
    const int row0 = (first_tile + blockIdx.x % per_group % height) * BM;
    const int col0 = blockIdx.x % per_group / height * BN;

    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int warp_row = warp / 2 * WM, warp_col = warp % 2 * WN;
    const int steps = (K + BK - 1) / BK;

    auto start = [&](int step) {
        if (step < steps) {
            Stage& s = ring[step % STAGES];
            bring<BM, BK, LDA, WIDE_A>(s.a, a, M, K, row0, step * BK);
            bring<BK, BN, LDB, WIDE_B>(s.b, b, K, N, step * BK, col0);
        }
        commit();    // also where nothing was started: the count of groups then tells the step
    };

    float acc[FRAGS_M][FRAGS_N][4] = {};
#pragma unroll
    for (int s = 0; s < STAGES - 1; ++s) start(s);
    for (int step = 0; step < steps; ++step) {
        wait<STAGES - 2>();
        __syncthreads();    // this step's stage is there for all; the previous one has been read by all
        start(step + STAGES - 1);
        multiply_stage(acc, ring[step % STAGES], warp_row, warp_col, lane);
    }
    wait<0>();

#pragma unroll
    for (int i = 0; i < FRAGS_M; ++i)
#pragma unroll
        for (int j = 0; j < FRAGS_N; ++j) {
            const int row = row0 + warp_row + i * 16 + lane / 4;
            const int col = col0 + warp_col + j * 8 + lane % 4 * 2;
            put_pair(out, M, N, row, col, acc[i][j][0], acc[i][j][1]);
            put_pair(out, M, N, row + 8, col, acc[i][j][2], acc[i][j][3]);
        }
}
