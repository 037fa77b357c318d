/* evoengine
name: adamw_segment_table
precision: fp32
summary: a first launch writes a table of segments with their factors, a second one works it off
tunables:
  TPB: [64, 128, 256]
  SEG: [512, 1024, 2048]       # elements of a segment
  ILP: [4, 2]                  # elements of a thread in registers
  ROUNDS: [3, 4, 2]            # segments of a block, about
let:
  SEGMENTS: ceil_div(N, SEG)
require:
  - TPB % WARP_SIZE == 0
  - SEG % (TPB * ILP) == 0
scratch:
  table: {dtype: int32, shape: ["ceil_div(N, SEG)", 8]}
launches:
  - kernel: lay_out_segments
    grid: ["ceil_div(SEGMENTS, TPB)"]
    block: [TPB]
    args: [table, N, SEGMENTS, rate, decay, correction1, correction2]
  - kernel: step_segments
    grid: ["ceil_div(SEGMENTS, ROUNDS)"]
    block: [TPB]
    args:
      - gradient
      - parameter
      - first
      - second
      - table
      - SEGMENTS
      - beta1
      - beta2
      - {value: 1 - beta1, dtype: float32}
      - {value: 1 - beta2, dtype: float32}
      - eps
*/

// In a real optimizer the segments come from many tensors and every parameter group has its own
// rates. The step itself therefore knows nothing of groups: all that differs between them is in
// the table, one record a segment, and N is cut up here as if it were a single group.

struct __align__(16) Segment {
    int   begin;        // first element
    int   count;        // elements, at most SEG
    float keep;         // 1 - rate * decay
    float step;         // rate / (1 - beta1^t)
    float inv_root;     // 1 / sqrt(1 - beta2^t)
    int   unused[3];
};
static_assert(sizeof(Segment) == 32, "the plan reserves eight words a segment");

constexpr int kWords = sizeof(Segment) / sizeof(int);

extern "C" __global__ void __launch_bounds__(TPB)
lay_out_segments(int* __restrict__ table, int N, int segments, float rate, float decay,
                 float correction1, float correction2)
{
    const int id = blockIdx.x * TPB + threadIdx.x;
    if (id >= segments) return;

    Segment s;
    s.begin    = id * SEG;
    s.count    = min(SEG, N - s.begin);
    s.keep     = 1.0f - rate * decay;
    s.step     = rate / correction1;
    s.inv_root = 1.0f / sqrtf(correction2);
    s.unused[0] = s.unused[1] = s.unused[2] = 0;
    reinterpret_cast<Segment*>(table)[id] = s;
}

// What a thread holds of one pass over a segment.
struct Held {
    float g[ILP], p[ILP], m[ILP], v[ILP];
};

// Lanes are neighbours within a row of 32 elements, a warp has ILP such rows one after the other.
__device__ __forceinline__ int slot_of(int pass, int i)
{
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    return pass + warp * (32 * ILP) + i * 32 + lane;
}

extern "C" __global__ void __launch_bounds__(TPB)
step_segments(const float* __restrict__ gradient, float* __restrict__ parameter,
              float* __restrict__ first, float* __restrict__ second, const int* __restrict__ table,
              int segments, float beta1, float beta2, float new1, float new2, float eps)
{
    // Two records: the next one may be written while slow warps still read the last one, and so
    // one barrier a segment is enough.
    __shared__ Segment records[2];

    int round = 0;
    for (int id = blockIdx.x; id < segments; id += gridDim.x, ++round) {
        Segment& mine = records[round & 1];
        if (threadIdx.x < kWords)
            reinterpret_cast<int*>(&mine)[threadIdx.x] = table[id * kWords + threadIdx.x];
        __syncthreads();

        const size_t begin = mine.begin;
        for (int pass = 0; pass < mine.count; pass += TPB * ILP) {
            Held h;
#pragma unroll
            for (int i = 0; i < ILP; ++i) {
                const int slot = slot_of(pass, i);
                const bool there = slot < mine.count;
                h.g[i] = there ? gradient[begin + slot] : 0.0f;
                h.p[i] = there ? parameter[begin + slot] : 0.0f;
                h.m[i] = there ? first[begin + slot] : 0.0f;
                h.v[i] = there ? second[begin + slot] : 0.0f;
            }
#pragma unroll
            for (int i = 0; i < ILP; ++i) {
                const float m = beta1 * h.m[i] + new1 * h.g[i];
                const float v = beta2 * h.v[i] + new2 * h.g[i] * h.g[i];
                const float size = sqrtf(v) * mine.inv_root + eps;
                h.p[i] = mine.keep * h.p[i] - mine.step * m / size;
                h.m[i] = m;
                h.v[i] = v;
            }
#pragma unroll
            for (int i = 0; i < ILP; ++i) {
                const int slot = slot_of(pass, i);
                if (slot < mine.count) {
                    parameter[begin + slot] = h.p[i];
                    first[begin + slot] = h.m[i];
                    second[begin + slot] = h.v[i];
                }
            }
        }
    }
}
