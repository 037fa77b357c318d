/* evoengine
name: anvil_walking_blocks
precision: fp16
summary: attention in blocks that walk over query tiles, a ring of key and value stages, P kept in registers
tunables:
  QROWS: [64, 32, 128]     # queries of a tile, 16 for every warp
  KROWS: [32, 64]          # keys of a stage
  RING: [3, 4]             # stages in shared memory
  WALK: [2, 1, 4]          # query tiles that a block computes, one after the other
let:
  QTILES: ceil_div(S, QROWS)
  TOTAL: B*H*QTILES
  SHARED: 2*QROWS*D + RING*4*KROWS*D
require:
  - SHARED <= MAX_SHARED_BYTES
launches:
  - kernel: anvil<D, causal>
    grid: ["ceil_div(TOTAL, WALK)"]
    block: [2*QROWS]
    shared: SHARED
    args: [q, k, v, out, S, QTILES, TOTAL, scale]
*/
// Persistent flavour: block b takes tiles b, b + gridDim.x, ... of the list (head, query tile).
// In a causal problem the list starts with the tiles that have most keys to see.
#include <cuda_fp16.h>

namespace ptx {

__device__ __forceinline__ void copy16(unsigned dst, const void* src, bool valid) {
    const int bytes = valid ? 16 : 0;    // the rest of the 16 is filled with zeros
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(dst), "l"(src), "r"(bytes) : "memory");
}
__device__ __forceinline__ void commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int LEFT> __device__ __forceinline__ void wait() { asm volatile("cp.async.wait_group %0;" ::"n"(LEFT) : "memory"); }

__device__ __forceinline__ void ldsm(unsigned (&f)[4], unsigned src) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(f[0]), "=r"(f[1]), "=r"(f[2]), "=r"(f[3]) : "r"(src) : "memory");
}
__device__ __forceinline__ void ldsm_t(unsigned (&f)[4], unsigned src) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(f[0]), "=r"(f[1]), "=r"(f[2]), "=r"(f[3]) : "r"(src) : "memory");
}
__device__ __forceinline__ void hmma(float (&d)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
__device__ __forceinline__ float ex2(float x) {
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

}  // namespace ptx

// A tile of rows of D halves in shared memory whose 16-byte units are XORed with the row.
template <int D> struct Tile {
    static constexpr int UNITS = D / 8;
    unsigned base;
    __device__ __forceinline__ unsigned unit(int row, int u) const { return base + (row * UNITS + (u ^ (row & 7))) * 16; }

    template <int ROWS> __device__ __forceinline__ void fill(const __half* head, int first, int S) const {
#pragma unroll
        for (int i = threadIdx.x; i < ROWS * UNITS; i += 2 * QROWS) {
            const int r = i / UNITS, u = i % UNITS;
            const bool valid = first + r < S;
            ptx::copy16(unit(r, u), head + (valid ? size_t(first + r) * D + u * 8 : 0), valid);
        }
    }
};

// What a warp knows about its rows g and g + 8 (g = lane / 4).
template <int D> struct RowState {
    float acc[D / 8][4], peak[2], mass[2];
    __device__ __forceinline__ void reset() {
#pragma unroll
        for (int n = 0; n < D / 8; ++n) acc[n][0] = acc[n][1] = acc[n][2] = acc[n][3] = 0.0f;
        peak[0] = peak[1] = -INFINITY;
        mass[0] = mass[1] = 0.0f;
    }
};

template <int D, bool CAUSAL>
__global__ void __launch_bounds__(2 * QROWS)
anvil(const __half* __restrict__ q, const __half* __restrict__ k, const __half* __restrict__ v,
      __half* __restrict__ out, int S, int qtiles, int total, float scale) {
    extern __shared__ __align__(128) unsigned char pool[];
    const unsigned smem = static_cast<unsigned>(__cvta_generic_to_shared(pool));
    constexpr int STAGE_BYTES = KROWS * D * 2;
    const Tile<D> tq{smem};
    auto tk = [&](int slot) { return Tile<D>{smem + QROWS * D * 2 + slot * 2 * STAGE_BYTES}; };
    auto tv = [&](int slot) { return Tile<D>{smem + QROWS * D * 2 + slot * 2 * STAGE_BYTES + STAGE_BYTES}; };

    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
    const float to_log2 = scale * 1.44269504f;

    for (int item = blockIdx.x; item < total; item += gridDim.x) {
        const int first = (qtiles - 1 - item % qtiles) * QROWS;
        const size_t head = size_t(item / qtiles) * S * D;
        const int end = CAUSAL ? min(S, first + QROWS) : S;
        const int stages = (end + KROWS - 1) / KROWS;
        auto request = [&](int stage) {
            if (stage < stages) {
                tk(stage % RING).template fill<KROWS>(k + head, stage * KROWS, S);
                tv(stage % RING).template fill<KROWS>(v + head, stage * KROWS, S);
            }
            ptx::commit();    // an empty group keeps the count of groups right
        };

        tq.template fill<QROWS>(q + head, first, S);    // travels in the group of stage 0
#pragma unroll
        for (int s = 0; s < RING - 1; ++s) request(s);

        RowState<D> rows;
        rows.reset();
        unsigned fq[D / 16][4];

        for (int stage = 0; stage < stages; ++stage) {
            ptx::wait<RING - 2>();
            __syncthreads();    // the stage is there for all, and all are done with the one before
            request(stage + RING - 1);
            if (stage == 0) {
#pragma unroll
                for (int c = 0; c < D / 16; ++c) ptx::ldsm(fq[c], tq.unit(warp * 16 + lane % 16, c * 2 + lane / 16));
            }

            const Tile<D> keys = tk(stage % RING), values = tv(stage % RING);
            float s[KROWS / 8][4] = {};
#pragma unroll
            for (int c = 0; c < D / 16; ++c)
#pragma unroll
                for (int n = 0; n < KROWS / 16; ++n) {
                    unsigned f[4];
                    ptx::ldsm(f, keys.unit(n * 16 + lane / 16 * 8 + lane % 8, c * 2 + lane / 8 % 2));
                    ptx::hmma(s[2 * n], fq[c], f[0], f[1]);
                    ptx::hmma(s[2 * n + 1], fq[c], f[2], f[3]);
                }

            // Key 0 is in stage 0 and every row sees it, so a peak is finite from then on.
            float top[2] = {rows.peak[0], rows.peak[1]};
#pragma unroll
            for (int n = 0; n < KROWS / 8; ++n)
#pragma unroll
                for (int e = 0; e < 4; ++e) {
                    const int key = stage * KROWS + n * 8 + t * 2 + e % 2;
                    const int row = first + warp * 16 + g + e / 2 * 8;
                    const bool seen = key < S && (!CAUSAL || key <= row);
                    s[n][e] = seen ? s[n][e] * to_log2 : -INFINITY;
                    top[e / 2] = fmaxf(top[e / 2], s[n][e]);
                }
#pragma unroll
            for (int h = 0; h < 2; ++h) {
                top[h] = fmaxf(top[h], __shfl_xor_sync(~0u, top[h], 1));
                top[h] = fmaxf(top[h], __shfl_xor_sync(~0u, top[h], 2));
                const float fade = ptx::ex2(rows.peak[h] - top[h]);
                rows.peak[h] = top[h];
                rows.mass[h] *= fade;    // of this lane's keys only; the quad adds up at the end
#pragma unroll
                for (int n = 0; n < D / 8; ++n) {
                    rows.acc[n][2 * h] *= fade;
                    rows.acc[n][2 * h + 1] *= fade;
                }
            }

            unsigned p[KROWS / 8][2];
#pragma unroll
            for (int n = 0; n < KROWS / 8; ++n)
#pragma unroll
                for (int h = 0; h < 2; ++h) {
                    const __half2 pair = __floats2half2_rn(ptx::ex2(s[n][2 * h] - top[h]), ptx::ex2(s[n][2 * h + 1] - top[h]));
                    const float2 rounded = __half22float2(pair);
                    rows.mass[h] += rounded.x + rounded.y;
                    p[n][h] = *reinterpret_cast<const unsigned*>(&pair);
                }

#pragma unroll
            for (int j = 0; j < KROWS / 16; ++j) {
                const unsigned a[4] = {p[2 * j][0], p[2 * j][1], p[2 * j + 1][0], p[2 * j + 1][1]};
#pragma unroll
                for (int c = 0; c < D / 16; ++c) {
                    unsigned f[4];
                    ptx::ldsm_t(f, values.unit(j * 16 + lane % 16, c * 2 + lane / 16));
                    ptx::hmma(rows.acc[2 * c], a, f[0], f[1]);
                    ptx::hmma(rows.acc[2 * c + 1], a, f[2], f[3]);
                }
            }
        }

#pragma unroll
        for (int h = 0; h < 2; ++h) {
            float mass = rows.mass[h];
            mass += __shfl_xor_sync(~0u, mass, 1);
            mass += __shfl_xor_sync(~0u, mass, 2);
            const float inverse = 1.0f / mass;
            const int row = first + warp * 16 + g + h * 8;
            if (row >= S) continue;
            __half2* to = reinterpret_cast<__half2*>(out + head + size_t(row) * D) + t;
#pragma unroll
            for (int n = 0; n < D / 8; ++n)
                to[n * 4] = __floats2half2_rn(rows.acc[n][2 * h] * inverse, rows.acc[n][2 * h + 1] * inverse);
        }
        __syncthreads();    // the next tile's first copies overwrite what this one's last stage reads
    }
}
