/* evoengine
name: ledger_strip
precision: fp16
summary: all scores of 16 queries lie in shared memory at once; an ordinary softmax narrows them to halves in place, and K and V go from global memory straight into fragments
let:
  PITCH: round_up(S, 16) + 4               # floats of a row of the strip; 4 more keep ldmatrix free of conflicts
  STRIP: 4 * 16 * PITCH
require:
  - STRIP + 64 <= MAX_SHARED_BYTES
launches:
  - kernel: ledgerAttention<D, causal>
    grid: ["ceil_div(S, 16)", "B * H"]
    block: [128]
    shared: STRIP + 64
    args: [q, k, v, out, S, PITCH, scale * 1.4426950408889634]
*/
// No online softmax, no tiles of K or V. Three phases with a block barrier between them:
//   1. scores   warp w multiplies Q by keys 16 w, 16 (w + 4), ... and enters the results in the strip
//   2. softmax  warp w has rows 4 w .. 4 w + 3; weights overwrite the front of the row that their scores came from
//   3. output   warp w has D / 4 columns and goes over all keys
#include <cuda_fp16.h>

namespace {

constexpr int kRows = 16, kWarps = 4;
constexpr unsigned kAll = 0xffffffffu;

struct Lane {
    int id = threadIdx.x & 31, warp = threadIdx.x >> 5;
    int group = id >> 2;          // row of an accumulator, column of a right operand
    int pair = (id & 3) * 2;      // column of an accumulator, row of a right operand
};

// Four columns a lane of a 16 x 16 product are two accumulators of 16 x 8.
struct Accumulator {
    float at[4] = {0.0f, 0.0f, 0.0f, 0.0f};
    __device__ void add(const unsigned (&a)[4], unsigned b0, unsigned b1) {
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                     : "+f"(at[0]), "+f"(at[1]), "+f"(at[2]), "+f"(at[3])
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
    }
};

// A matrix of S rows in global memory; rows beyond the end read as zeros.
template <int D> struct Rows {
    const half* base;
    int count;
    __device__ unsigned two(int row, int column) const {
        return row < count ? __ldg(reinterpret_cast<const unsigned*>(base + size_t(row) * D + column)) : 0u;
    }
};

__device__ float warpMax(float x) {
    for (int hop = 16; hop; hop >>= 1) x = fmaxf(x, __shfl_xor_sync(kAll, x, hop));
    return x;
}
__device__ float warpSum(float x) {
    for (int hop = 16; hop; hop >>= 1) x += __shfl_xor_sync(kAll, x, hop);
    return x;
}

template <int D, bool CAUSAL>
__device__ void enterScores(float* strip, int pitch, Rows<D> q, Rows<D> k, int first, int end, float scale, const Lane& lane) {
    unsigned a[D / 16][4];
    for (int d = 0; d < D / 16; ++d)
        for (int i = 0; i < 4; ++i)
            a[d][i] = q.two(first + lane.group + i % 2 * 8, d * 16 + lane.pair + i / 2 * 8);

    for (int key = lane.warp * 16; key < end; key += kWarps * 16) {
        Accumulator s[2];
#pragma unroll
        for (int d = 0; d < D / 16; ++d)
            for (int n = 0; n < 2; ++n) {
                const int row = key + n * 8 + lane.group;
                s[n].add(a[d], k.two(row, d * 16 + lane.pair), k.two(row, d * 16 + lane.pair + 8));
            }
        for (int n = 0; n < 2; ++n)
            for (int i = 0; i < 4; ++i) {
                const int r = lane.group + i / 2 * 8, c = key + n * 8 + lane.pair + i % 2;
                const bool seen = c < k.count && (!CAUSAL || c <= first + r);
                strip[r * pitch + c] = seen ? s[n].at[i] * scale : -INFINITY;
            }
    }
}

// Scores of a row become weights in halves. Weight i ends at byte 2 i + 2 of the row, so what is written never reaches
// beyond the scores of its own round; within the first round all lanes must have read before one writes.
__device__ void narrowRow(float* row, float* inverse, int width, const Lane& lane) {
    float top = -INFINITY, total = 0.0f;
    for (int c = lane.id; c < width; c += 32) top = fmaxf(top, row[c]);
    top = warpMax(top);
    half2* weights = reinterpret_cast<half2*>(row);
    for (int c = 0; c < width; c += 64) {
        const int mine = c + lane.id * 2;
        float2 s = make_float2(-INFINITY, -INFINITY);
        if (mine < width) s = *reinterpret_cast<const float2*>(row + mine);
        __syncwarp();
        const half2 w = __floats2half2_rn(exp2f(s.x - top), exp2f(s.y - top));
        const float2 rounded = __half22float2(w);
        total += rounded.x + rounded.y;
        if (mine < width) weights[mine / 2] = w;
    }
    total = warpSum(total);
    if (lane.id == 0) *inverse = 1.0f / total;
}

// 16 columns of the output. Two words of V, from keys 2 i and 2 i + 1, hold two columns of both keys; exchanging halves
// gives the right operands of an even and of an odd column. So accumulator e has columns 2 n + e, and a lane's results
// of a row are four neighbours.
template <int D>
__device__ void weighValues(const float* strip, int pitch, Rows<D> v, int column, int width, const Lane& lane, Accumulator (&o)[2]) {
    const unsigned from = static_cast<unsigned>(__cvta_generic_to_shared(strip)) + (lane.id % 16) * pitch * 4 + lane.id / 16 * 16;
    for (int key = 0; key < width; key += 16) {
        unsigned a[4], word[4];
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(a[0]), "=r"(a[1]), "=r"(a[2]), "=r"(a[3]) : "r"(from + key * 2) : "memory");
        for (int i = 0; i < 4; ++i) word[i] = v.two(key + lane.pair + i % 2 + i / 2 * 8, column + lane.group * 2);
        o[0].add(a, __byte_perm(word[0], word[1], 0x5410), __byte_perm(word[2], word[3], 0x5410));
        o[1].add(a, __byte_perm(word[0], word[1], 0x7632), __byte_perm(word[2], word[3], 0x7632));
    }
}

}  // namespace

template <int D, bool CAUSAL>
__global__ void __launch_bounds__(kWarps * 32)
ledgerAttention(const half* q, const half* k, const half* v, half* out, int S, int pitch, float scale) {
    extern __shared__ __align__(16) float strip[];
    float* inverse = strip + kRows * pitch;
    const Lane lane;
    const size_t head = size_t(blockIdx.y) * S * D;
    const int first = blockIdx.x * kRows;
    const int end = CAUSAL ? min(S, first + kRows) : S;
    const int width = (end + 15) / 16 * 16;      // entries of a row of the strip

    enterScores<D, CAUSAL>(strip, pitch, {q + head, S}, {k + head, S}, first, end, scale, lane);
    __syncthreads();
    for (int r = lane.warp * 4; r < lane.warp * 4 + 4; ++r) narrowRow(strip + r * pitch, inverse + r, width, lane);
    __syncthreads();

    for (int column = lane.warp * (D / 4); column < (lane.warp + 1) * (D / 4); column += 16) {
        Accumulator o[2];
        weighValues<D>(strip, pitch, {v + head, S}, column, width, lane, o);
        for (int h = 0; h < 2; ++h) {
            const int r = lane.group + h * 8;
            if (first + r >= S) continue;
            const float f = inverse[r];
            const half2 left = __floats2half2_rn(o[0].at[2 * h] * f, o[1].at[2 * h] * f);
            const half2 right = __floats2half2_rn(o[0].at[2 * h + 1] * f, o[1].at[2 * h + 1] * f);
            half2* to = reinterpret_cast<half2*>(out + head + size_t(first + r) * D + column + lane.pair * 2);
            to[0] = left, to[1] = right;
        }
    }
}
