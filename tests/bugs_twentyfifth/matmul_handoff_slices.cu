/* evoengine
name: matmul_handoff_slices
precision: fp16
summary: loading warps hand tiles to multiplying warps over named barriers; slices of K are added by a second launch
tunables:
  SLICES: [2, 1, 3, 4]    # parts of K that are summed apart
  ITEMS: [2, 1, 4]        # (tile, slice) pairs that a block takes one after the other
let:
  ROWS: round_up(M, 64)   # of the partial sums, which have whole tiles
  COLS: round_up(N, 64)
  STEPS: ceil_div(K, 32)
  SLICE_STEPS: ceil_div(STEPS, SLICES)
  WORK: ROWS // 64 * (COLS // 64) * SLICES
scratch:
  part: {dtype: float32, shape: [SLICES, ROWS, COLS]}
launches:
  - kernel: slice_products
    grid: ["ceil_div(WORK, ITEMS)"]
    block: [192]
    args: [a, b, part, M, N, K, ROWS, COLS, STEPS, SLICE_STEPS, WORK]
  - kernel: add_slices
    grid: ["ceil_div(N, 128)", "ceil_div(M, 4)"]
    block: [32, 4]
    args: [part, out, M, N, ROWS, COLS]
*/
#include <cuda_fp16.h>
#include <mma.h>

using namespace nvcuda;

constexpr int BM = 64, BN = 64, BK = 32;
constexpr int MATH = 128, LOAD = 64, ALL = MATH + LOAD;   // threads that multiply and threads that load
constexpr int LDA = BK + 8, LDB = BN + 8;
constexpr int FULL = 1, FREE = 3;                         // named barriers, two of each: one a buffer

// Half of the threads at a barrier only announce something and go on; the others wait for it.
__device__ __forceinline__ void wait_at(int id) { asm volatile("bar.sync %0, %1;" ::"r"(id), "n"(ALL) : "memory"); }
__device__ __forceinline__ void announce(int id) { asm volatile("bar.arrive %0, %1;" ::"r"(id), "n"(ALL) : "memory"); }

// What a block does at a time: one tile of the output over one slice of K.
struct Item {
    int slice, m0, n0, begin, end;   // begin and end in steps of BK

    __device__ __forceinline__ Item(int index, int cols, int steps, int slice_steps) {
        slice = index % SLICES;
        const int tile = index / SLICES, across = cols / BN;
        m0 = tile / across * BM;
        n0 = tile % across * BN;
        begin = min(slice * slice_steps, steps);   // the last slices may be empty
        end = min(begin + slice_steps, steps);
    }
};

// Eight halves of a row-major matrix [h, w] from (r, c) on, zeros outside it.
__device__ __forceinline__ uint4 take8(const __half* __restrict__ p, int h, int w, int r, int c) {
    if (r >= h || c >= w) return make_uint4(0, 0, 0, 0);
    p += size_t(r) * w + c;
    if (w % 8 == 0) return *reinterpret_cast<const uint4*>(p);
    const unsigned short* bits = reinterpret_cast<const unsigned short*>(p);
    unsigned q[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        const unsigned lo = c + 2 * i < w ? bits[2 * i] : 0, hi = c + 2 * i + 1 < w ? bits[2 * i + 1] : 0;
        q[i] = hi << 16 | lo;
    }
    return make_uint4(q[0], q[1], q[2], q[3]);
}

__global__ void __launch_bounds__(ALL)
slice_products(const __half* __restrict__ a, const __half* __restrict__ b, float* __restrict__ part,
               int M, int N, int K, int rows, int cols, int steps, int slice_steps, int work) {
    __shared__ __align__(128) __half sa[2][BM * LDA];
    __shared__ __align__(128) __half sb[2][BK * LDB];
    const int first = blockIdx.x * ITEMS, last = min(first + ITEMS, work);
    int turn = 0;   // counts steps over all items, the same on both sides: its parity names the buffer

    if (threadIdx.x >= MATH) {
        const int t = threadIdx.x - MATH;
        for (int index = first; index < last; ++index) {
            const Item it(index, cols, steps, slice_steps);
            for (int s = it.begin; s < it.end; ++s, ++turn) {
                uint4 qa[4], qb[4];   // on their way while the buffer may still be read
#pragma unroll
                for (int i = 0; i < 4; ++i) {
                    const int j = t + i * LOAD;
                    qa[i] = take8(a, M, K, it.m0 + j / 4, s * BK + j % 4 * 8);
                    qb[i] = take8(b, K, N, s * BK + j / 8, it.n0 + j % 8 * 8);
                }
                const int buf = turn % 2;
                if (turn >= 2) wait_at(FREE + buf);
#pragma unroll
                for (int i = 0; i < 4; ++i) {
                    const int j = t + i * LOAD;
                    *reinterpret_cast<uint4*>(&sa[buf][j / 4 * LDA + j % 4 * 8]) = qa[i];
                    *reinterpret_cast<uint4*>(&sb[buf][j / 8 * LDB + j % 8 * 8]) = qb[i];
                }
                announce(FULL + buf);
            }
        }
        for (int s = max(turn - 2, 0); s < turn; ++s) wait_at(FREE + s % 2);   // no barrier is left half full
        return;
    }

    const int warp = threadIdx.x / 32, wm = warp / 2 * 32, wn = warp % 2 * 32;
    for (int index = first; index < last; ++index) {
        const Item it(index, cols, steps, slice_steps);
        wmma::fragment<wmma::accumulator, 16, 16, 16, float> acc[2][2];
        for (int i = 0; i < 4; ++i) wmma::fill_fragment(acc[i / 2][i % 2], 0.0f);

        for (int s = it.begin; s < it.end; ++s, ++turn) {
            const int buf = turn % 2;
            wait_at(FULL + buf);
#pragma unroll
            for (int k = 0; k < BK; k += 16) {
                wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> fa[2];
                wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::row_major> fb[2];
                for (int i = 0; i < 2; ++i) {
                    wmma::load_matrix_sync(fa[i], &sa[buf][(wm + i * 16) * LDA + k], LDA);
                    wmma::load_matrix_sync(fb[i], &sb[buf][k * LDB + wn + i * 16], LDB);
                }
                for (int i = 0; i < 4; ++i) wmma::mma_sync(acc[i / 2][i % 2], fa[i / 2], fb[i % 2], acc[i / 2][i % 2]);
            }
            announce(FREE + buf);
        }
        float* to = part + (size_t(it.slice) * rows + it.m0 + wm) * cols + it.n0 + wn;
        for (int i = 0; i < 4; ++i)
            wmma::store_matrix_sync(to + size_t(i / 2 * 16) * cols + i % 2 * 16, acc[i / 2][i % 2], cols, wmma::mem_row_major);
    }
}

// Four columns a thread. The rows of `part` are whole tiles long, those of `out` are not.
__global__ void __launch_bounds__(128)
add_slices(const float* __restrict__ part, __half* __restrict__ out, int M, int N, int rows, int cols) {
    const int c = (blockIdx.x * 32 + threadIdx.x) * 4, r = blockIdx.y * 4 + threadIdx.y;
    if (r >= M || c >= N) return;
    float4 sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    for (int s = 0; s < SLICES; ++s) {
        const float4 p = *reinterpret_cast<const float4*>(part + (size_t(s) * rows + r) * cols + c);
        sum.x += p.x, sum.y += p.y, sum.z += p.z, sum.w += p.w;
    }
    const __half four[4] = {__float2half(sum.x), __float2half(sum.y), __float2half(sum.z), __float2half(sum.w)};
    __half* to = out + size_t(r) * N + c;
    for (int i = 0; i < min(4, N - c); ++i) to[i] = four[i];
}
