/* evoengine
name: driftingHalves
precision: fp16
summary: the two halves of a block take alternate key tiles of the same queries; each has its own tiles and its own named barrier, and they meet only to merge
tunables:
  WARPS: [2, 4]                # of a half; 16 queries each
let:
  ROWS: 16 * WARPS
  TILES: 2 * 32 * (D + 8) + 2 * 40 * D
  STAGED: 4 * ROWS * (D + 4)
  AREA: max(TILES, STAGED)     # of a half
launches:
  - kernel: attendHalves<D, causal>
    grid: ["ceil_div(S, ROWS)", "B*H"]
    block: [2 * 32 * WARPS]
    shared: 2 * (AREA + 8 * ROWS)
    args: [q, k, v, out, S, scale]
*/
#include <cuda_fp16.h>

constexpr int kKeys = 32;
constexpr int kRows = 16 * WARPS;
constexpr int kThreads = 32 * WARPS;    // of a half
constexpr int kVtPitch = kKeys + 8;     // halves; 20 words: eight rows times four words meet 32 different banks
constexpr float kLog2e = 1.44269504f;

struct FragA { unsigned r[4]; };
struct FragC { float f[4]; };

__device__ __forceinline__ void mma16816(FragC& c, const FragA& a, unsigned b0, unsigned b1) {
    asm volatile(
        "{\n\t"
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};\n\t"
        "}"
        : "+f"(c.f[0]), "+f"(c.f[1]), "+f"(c.f[2]), "+f"(c.f[3])
        : "r"(a.r[0]), "r"(a.r[1]), "r"(a.r[2]), "r"(a.r[3]), "r"(b0), "r"(b1));
}

__device__ __forceinline__ unsigned word(const __half* p) { return *reinterpret_cast<const unsigned*>(p); }

__device__ __forceinline__ unsigned twoHalves(float a, float b) {
    __half2 h = __floats2half2_rn(a, b);
    return reinterpret_cast<const unsigned&>(h);
}

// Only the warps of one half wait for each other here.
__device__ __forceinline__ void meetHalf(int half) {
    asm volatile("bar.sync %0, %1;" ::"r"(1 + half), "n"(kThreads) : "memory");
}

// Keys and values of one tile on their way through registers.
template <int D> struct InFlight {
    static constexpr int kEach = kKeys * D / 8 / kThreads;
    uint4 key[kEach], value[kEach];

    __device__ __forceinline__ void load(const __half* k, const __half* v, int thread, int start, int S) {
#pragma unroll
        for (int j = 0; j < kEach; ++j) {
            const int i = thread + j * kThreads;
            const int kr = start + i / (D / 8), vr = start + i % kKeys;
            const uint4 none = make_uint4(0, 0, 0, 0);
            key[j] = kr < S ? *reinterpret_cast<const uint4*>(k + size_t(kr) * D + i % (D / 8) * 8) : none;
            value[j] = vr < S ? *reinterpret_cast<const uint4*>(v + size_t(vr) * D + i / kKeys * 8) : none;
        }
    }
    // Keys keep their rows. Values are turned, [column][key]: a lane's neighbours hold other keys of the same
    // columns, so that a warp's two-byte stores go to 16 neighbouring words.
    __device__ __forceinline__ void store(__half* ks, __half* vt, int thread) const {
#pragma unroll
        for (int j = 0; j < kEach; ++j) {
            const int i = thread + j * kThreads;
            *reinterpret_cast<uint4*>(ks + i / (D / 8) * (D + 8) + i % (D / 8) * 8) = key[j];
            const __half* e = reinterpret_cast<const __half*>(&value[j]);
#pragma unroll
            for (int c = 0; c < 8; ++c) vt[(i / kKeys * 8 + c) * kVtPitch + i % kKeys] = e[c];
        }
    }
};

template <int D, bool kCausal>
__global__ void __launch_bounds__(2 * kThreads)
attendHalves(const __half* __restrict__ q, const __half* __restrict__ k, const __half* __restrict__ v, __half* __restrict__ out,
             int S, float scale) {
    constexpr int kKPitch = D + 8, kOPitch = D + 4;
    constexpr int kTileBytes = 2 * kKeys * kKPitch + 2 * kVtPitch * D, kStagedBytes = 4 * kRows * kOPitch;
    constexpr int kArea = kTileBytes > kStagedBytes ? kTileBytes : kStagedBytes;
    extern __shared__ __align__(16) unsigned char smem[];
    const int half = threadIdx.x / kThreads, thread = threadIdx.x % kThreads;
    const int lane = thread & 31, warp = thread >> 5, g = lane >> 2, t = lane & 3;
    __half* ks = reinterpret_cast<__half*>(smem + half * kArea);
    __half* vt = ks + kKeys * kKPitch;
    float* mine = reinterpret_cast<float*>(smem + half * kArea);        // after the last tile, in its place
    float2* stats = reinterpret_cast<float2*>(smem + 2 * kArea);        // [2][kRows]: maximum and sum

    const size_t head = size_t(blockIdx.y) * S * D;
    q += head, k += head, v += head, out += head;
    const int rowBase = blockIdx.x * kRows, myRow = rowBase + warp * 16 + g;
    const float factor = scale * kLog2e;
    const float minusInf = -__int_as_float(0x7f800000);

    FragA qf[D / 16];
#pragma unroll
    for (int d = 0; d < D / 16; ++d) {
        const __half* lo = q + size_t(myRow) * D + d * 16 + 2 * t;
        const __half* hi = lo + 8 * D;
        const bool inLo = myRow < S, inHi = myRow + 8 < S;
        qf[d].r[0] = inLo ? word(lo) : 0u;
        qf[d].r[1] = inHi ? word(hi) : 0u;
        qf[d].r[2] = inLo ? word(lo + 8) : 0u;
        qf[d].r[3] = inHi ? word(hi + 8) : 0u;
    }

    FragC o[D / 8] = {};
    float peak[2] = {minusInf, minusInf}, mass[2] = {0.f, 0.f};
    const int limit = kCausal ? min(S, rowBase + kRows) : S;
    const int tiles = (limit + kKeys - 1) / kKeys;

    InFlight<D> next;
    next.load(k, v, thread, half * kKeys, S);
    for (int tile = half; tile < tiles; tile += 2) {
        next.store(ks, vt, thread);
        meetHalf(half);
        if (tile + 2 < tiles) next.load(k, v, thread, (tile + 2) * kKeys, S);

        FragC s[kKeys / 8] = {};
#pragma unroll
        for (int n = 0; n < kKeys / 8; ++n)
#pragma unroll
            for (int d = 0; d < D / 16; ++d) {
                const __half* b = ks + (n * 8 + g) * kKPitch + d * 16 + 2 * t;
                mma16816(s[n], qf[d], word(b), word(b + 8));
            }
#pragma unroll
        for (int n = 0; n < kKeys / 8; ++n)
#pragma unroll
            for (int e = 0; e < 4; ++e) {
                const int key = tile * kKeys + n * 8 + 2 * t + (e & 1), row = myRow + (e & 2) * 4;
                s[n].f[e] = key >= S || (kCausal && key > row) ? minusInf : s[n].f[e] * factor;
            }
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            float top = peak[h];
#pragma unroll
            for (int n = 0; n < kKeys / 8; ++n) top = fmaxf(top, fmaxf(s[n].f[2 * h], s[n].f[2 * h + 1]));
            top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, 1));
            top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, 2));
            const float base = top == minusInf ? 0.f : top;      // no key of this tile or an earlier one is seen
            const float keep = exp2f(peak[h] - base);
            peak[h] = top;
            mass[h] *= keep;
#pragma unroll
            for (int c = 0; c < D / 8; ++c) o[c].f[2 * h] *= keep, o[c].f[2 * h + 1] *= keep;
#pragma unroll
            for (int n = 0; n < kKeys / 8; ++n)
#pragma unroll
                for (int e = 2 * h; e < 2 * h + 2; ++e) mass[h] += s[n].f[e] = exp2f(s[n].f[e] - base);
        }
#pragma unroll
        for (int j = 0; j < kKeys / 16; ++j) {
            FragA p;
#pragma unroll
            for (int i = 0; i < 4; ++i) p.r[i] = twoHalves(s[2 * j + i / 2].f[i % 2 * 2], s[2 * j + i / 2].f[i % 2 * 2 + 1]);
#pragma unroll
            for (int c = 0; c < D / 8; ++c) {
                const __half* b = vt + (c * 8 + g) * kVtPitch + j * 16 + 2 * t;
                mma16816(o[c], p, word(b), word(b + 8));
            }
        }
        meetHalf(half);
    }

    // What each half found goes to its own part of shared memory.
#pragma unroll
    for (int h = 0; h < 2; ++h) {
        mass[h] += __shfl_xor_sync(0xffffffffu, mass[h], 1);
        mass[h] += __shfl_xor_sync(0xffffffffu, mass[h], 2);
        const int r = warp * 16 + g + 8 * h;
        if (t == 0) stats[half * kRows + r] = make_float2(peak[h], mass[h]);
#pragma unroll
        for (int c = 0; c < D / 8; ++c)
            *reinterpret_cast<float2*>(mine + r * kOPitch + c * 8 + 2 * t) = make_float2(o[c].f[2 * h], o[c].f[2 * h + 1]);
    }
    __syncthreads();
    const float* first = reinterpret_cast<const float*>(smem);
    const float* second = reinterpret_cast<const float*>(smem + kArea);
    for (int i = threadIdx.x; i < kRows * (D / 2); i += 2 * kThreads) {
        const int r = i / (D / 2), c = i % (D / 2) * 2;
        if (rowBase + r >= S) break;
        const float2 a = stats[r], b = stats[kRows + r];
        const float top = fmaxf(a.x, b.x), wa = exp2f(a.x - top), wb = exp2f(b.x - top);     // a half without keys weighs 0
        const float inv = 1.f / (wa * a.y + wb * b.y);
        const float2 x = *reinterpret_cast<const float2*>(first + r * kOPitch + c);
        const float2 y = *reinterpret_cast<const float2*>(second + r * kOPitch + c);
        *reinterpret_cast<__half2*>(out + size_t(rowBase + r) * D + c) =
            __floats2half2_rn((wa * x.x + wb * y.x) * inv, (wa * x.y + wb * y.y) * inv);
    }
}
