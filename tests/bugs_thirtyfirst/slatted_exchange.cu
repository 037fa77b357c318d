/* evoengine
name: slatted_exchange
precision: fp16
summary: every warp has a quarter of the head's columns of Q, K, V and the output; partial scores of 16 x 32 meet in shared memory where each warp has named barriers of its own that it rings a tile ahead
let:
  SLAT: D // 4                                     # columns of a warp
  PRIVATE: 2 * 2 * 2 * 32 * (SLAT + 8)             # bytes of a warp: K and V in two stages
  EXCHANGE: 3 * 4 * 4 * 16 * 36                    # bytes: three slots of four partial tiles
launches:
  - kernel: "slatted<D, causal>"
    grid: ["ceil_div(S, 16)", "B*H"]
    block: [128]
    shared: EXCHANGE + 4 * PRIVATE
    args: [q, k, v, out, S, scale]
*/
// Tile j of the keys goes through these steps in every warp:
//     deposit(j)   product of the warp's columns of Q and K, into slot j % 3; then the warp announces it
//     collect(j)   wait for the other warps, add the four partial products (always in the same order: all warps get the same bits)
//     absorb(j)    online softmax, which all warps repeat, and the product with the warp's columns of V
// In one turn of the loop come collect's wait for j, deposit(j + 1), the rest of collect(j), and absorb(j). A warp in turn j
// knows that all have deposited j, so all have left turn j - 2 and the slot that it fills next is no longer read.
// Columns of K and V are private to their warp: nobody else waits for them.
#include <cuda_fp16.h>
#include <cstdint>

namespace slat {

constexpr int WARPS = 4, BM = 16, BN = 32, SLOTS = 3, PITCH = 36;

using Frag = uint32_t[4];

__device__ inline uint32_t smem(const void* p) { return uint32_t(__cvta_generic_to_shared(p)); }

// Warp w says that tile j is deposited at barrier 1 + w or 5 + w, in turns: it may arrive for j + 1 while somebody has yet
// to look for j, but never for j + 2. It arrives and goes on; the three others wait there.
__device__ inline int bell(int j, int w) { return 1 + j % 2 * WARPS + w; }
__device__ inline void announce(int j, int w) {
    asm volatile("bar.arrive %0, %1;" ::"r"(bell(j, w)), "n"(WARPS * 32) : "memory");
}
__device__ inline void waitForOthers(int j, int w) {
    for (int other = 0; other < WARPS; ++other)
        if (other != w) asm volatile("bar.sync %0, %1;" ::"r"(bell(j, other)), "n"(WARPS * 32) : "memory");
}

__device__ inline void load4(Frag& f, uint32_t at) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(f[0]), "=r"(f[1]), "=r"(f[2]), "=r"(f[3]) : "r"(at) : "memory");
}
__device__ inline void load4Turned(Frag& f, uint32_t at) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(f[0]), "=r"(f[1]), "=r"(f[2]), "=r"(f[3]) : "r"(at) : "memory");
}
__device__ inline void mma(float (&c)[4], const Frag& a, uint32_t b0, uint32_t b1) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
__device__ inline uint32_t halves(float x, float y) {
    const half2 h = __floats2half2_rn(x, y);
    return reinterpret_cast<const uint32_t&>(h);
}

// The warp's W columns of 32 rows, in rows of W + 8 halves.
template <int D, int W> __device__ inline void fetch(half* to, const half* from, int first, int S, int lane) {
    for (int i = lane; i < BN * W / 8; i += 32) {
        const int r = i / (W / 8), c = i % (W / 8) * 8;
        const int bytes = first + r < S ? 16 : 0;      // 0: the row becomes zeros
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                     ::"r"(smem(to + r * (W + 8) + c)), "l"(from + (bytes ? size_t(first + r) * D + c : 0)), "r"(bytes) : "memory");
    }
}
__device__ inline void commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int N> __device__ inline void landed() {
    asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
    __syncwarp();
}

}  // namespace slat

template <int D, bool CAUSAL>
__global__ void __launch_bounds__(128)
slatted(const half* q, const half* k, const half* v, half* out, int S, float scale) {
    using namespace slat;
    constexpr int W = D / 4, ROW = W + 8, STAGE = BN * ROW;
    extern __shared__ __align__(16) unsigned char raw[];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, g = lane / 4, t = lane % 4 * 2;
    float* slots = reinterpret_cast<float*>(raw);                                        // [SLOTS][WARPS][BM][PITCH]
    half* keys = reinterpret_cast<half*>(slots + SLOTS * WARPS * BM * PITCH) + warp * 4 * STAGE;
    half* values = keys + 2 * STAGE;

    const int row0 = blockIdx.x * BM;
    const size_t origin = size_t(blockIdx.y) * S * D + warp * W;
    const int last = CAUSAL ? min(S, row0 + BM) : S;
    const int tiles = (last + BN - 1) / BN;

    fetch<D, W>(keys, k + origin, 0, S, lane);
    commit();
    fetch<D, W>(values, v + origin, 0, S, lane);
    fetch<D, W>(keys + STAGE, k + origin, BN, S, lane);
    commit();

    Frag query[W / 16];
    for (int d = 0; d < W / 16; ++d)
        for (int i = 0; i < 4; ++i) {
            const int r = row0 + g + i % 2 * 8;
            query[d][i] = r < S ? *reinterpret_cast<const uint32_t*>(q + origin + size_t(r) * D + d * 16 + t + i / 2 * 8) : 0u;
        }

    auto deposit = [&](int j) {
        float part[BN / 8][4] = {};
        const half* tile = keys + j % 2 * STAGE;
        for (int d = 0; d < W / 16; ++d)
            for (int n = 0; n < BN / 16; ++n) {
                Frag b;
                load4(b, smem(tile + (n * 16 + lane / 16 * 8 + lane % 8) * ROW + d * 16 + lane / 8 % 2 * 8));
                mma(part[2 * n], query[d], b[0], b[1]);
                mma(part[2 * n + 1], query[d], b[2], b[3]);
            }
        float* mine = slots + (j % SLOTS * WARPS + warp) * BM * PITCH;
        for (int n = 0; n < BN / 8; ++n)
            for (int h = 0; h < 2; ++h)
                *reinterpret_cast<float2*>(mine + (g + 8 * h) * PITCH + n * 8 + t) = make_float2(part[n][2 * h], part[n][2 * h + 1]);
        announce(j, warp);
    };

    landed<1>();
    deposit(0);

    const float factor = scale * 1.4426950408889634f;
    float o[W / 8][4] = {}, top[2] = {-INFINITY, -INFINITY}, sum[2] = {0.0f, 0.0f};
    for (int j = 0; j < tiles; ++j) {
        __syncwarp();                // the stages that are filled now have been read by all lanes
        fetch<D, W>(values + (j + 1) % 2 * STAGE, v + origin, (j + 1) * BN, S, lane);
        fetch<D, W>(keys + j % 2 * STAGE, k + origin, (j + 2) * BN, S, lane);
        commit();
        landed<1>();

        waitForOthers(j, warp);
        if (j + 1 < tiles) deposit(j + 1);

        float s[BN / 8][4] = {};
        for (int w = 0; w < WARPS; ++w) {
            const float* theirs = slots + (j % SLOTS * WARPS + w) * BM * PITCH;
            for (int n = 0; n < BN / 8; ++n)
                for (int h = 0; h < 2; ++h) {
                    const float2 x = *reinterpret_cast<const float2*>(theirs + (g + 8 * h) * PITCH + n * 8 + t);
                    s[n][2 * h] += x.x, s[n][2 * h + 1] += x.y;
                }
        }
        if ((j + 1) * BN > S || (CAUSAL && (j + 1) * BN > row0 + 1))
            for (int n = 0; n < BN / 8; ++n)
                for (int i = 0; i < 4; ++i) {
                    const int key = j * BN + n * 8 + t + i % 2;
                    if (key >= S || (CAUSAL && key > row0 + g + i / 2 * 8)) s[n][i] = -INFINITY;
                }

        for (int h = 0; h < 2; ++h) {
            float high = top[h];
            for (int n = 0; n < BN / 8; ++n) high = fmaxf(high, fmaxf(s[n][2 * h], s[n][2 * h + 1]));
            high = fmaxf(high, __shfl_xor_sync(0xffffffffu, high, 1));
            high = fmaxf(high, __shfl_xor_sync(0xffffffffu, high, 2));
            const float fade = exp2f((top[h] - high) * factor);      // key 0 is seen by all rows, so high is finite
            top[h] = high;
            sum[h] *= fade;
            for (int n = 0; n < W / 8; ++n) o[n][2 * h] *= fade, o[n][2 * h + 1] *= fade;
            for (int n = 0; n < BN / 8; ++n)
                for (int e = 0; e < 2; ++e) sum[h] += s[n][2 * h + e] = exp2f((s[n][2 * h + e] - high) * factor);
        }

        const half* tile = values + j % 2 * STAGE;
        for (int m = 0; m < BN / 16; ++m) {
            const Frag p = {halves(s[2 * m][0], s[2 * m][1]), halves(s[2 * m][2], s[2 * m][3]),
                            halves(s[2 * m + 1][0], s[2 * m + 1][1]), halves(s[2 * m + 1][2], s[2 * m + 1][3])};
            for (int n = 0; n < W / 16; ++n) {
                Frag b;
                load4Turned(b, smem(tile + (m * 16 + lane % 16) * ROW + n * 16 + lane / 16 * 8));
                mma(o[2 * n], p, b[0], b[1]);
                mma(o[2 * n + 1], p, b[2], b[3]);
            }
        }
    }

    for (int h = 0; h < 2; ++h) {
        sum[h] += __shfl_xor_sync(0xffffffffu, sum[h], 1);
        sum[h] += __shfl_xor_sync(0xffffffffu, sum[h], 2);
        const int r = row0 + g + 8 * h;
        if (r >= S) continue;
        for (int n = 0; n < W / 8; ++n)
            *reinterpret_cast<half2*>(out + origin + size_t(r) * D + n * 8 + t) =
                __floats2half2_rn(o[n][2 * h] / sum[h], o[n][2 * h + 1] / sum[h]);
    }
}
