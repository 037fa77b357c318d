/* evoengine
name: weir_sliced_keys_fold
precision: fp16
summary: keys of a head sliced over blocks, float arithmetic, eight lanes for two queries; a second launch folds the slices
tunables:
  SLICES: [3, 2, 4, 8]
let:
  ROWS: B * H * S
  CHUNK: round_up(ceil_div(S, SLICES), 32)
scratch:
  part_out: {dtype: float32, shape: [SLICES, ROWS, D]}
  part_sum: {dtype: float32, shape: [SLICES, ROWS]}
  part_max: {dtype: float32, shape: [SLICES, ROWS], init: -inf}   # -inf: the slice has nothing for the row
launches:
  - kernel: weir_slice<D, causal>
    grid: ["ceil_div(S, 32)", SLICES, "B * H"]
    block: [128]
    args: [q, k, v, part_out, part_sum, part_max, S, CHUNK, scale]
  - kernel: weir_fold<D>
    grid: ["ceil_div(ROWS, 4)"]
    block: [128]
    args: [part_out, part_sum, part_max, out, ROWS]
*/
#include <cuda_fp16.h>

namespace {

constexpr int kThreads = 128;
constexpr int kLanes = 8;                        // lanes that share queries
constexpr int kGroups = kThreads / kLanes;
constexpr int kQueries = 2 * kGroups;            // group g: queries g and g + kGroups
constexpr int kKeys = 32;
constexpr int kKeysPerLane = kKeys / kLanes;     // lane l scores keys l, l + 8, l + 16, l + 24
constexpr unsigned kWarp = 0xffffffffu;

__device__ inline float negInf() { return -__int_as_float(0x7f800000); }

struct Eight {
  float x[8];
};

__device__ inline Eight loadEight(__half const* from) {
  uint4 const raw = *reinterpret_cast<uint4 const*>(from);
  __half2 const* pairs = reinterpret_cast<__half2 const*>(&raw);
  Eight r;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    float2 const f = __half22float2(pairs[i]);
    r.x[2 * i] = f.x;
    r.x[2 * i + 1] = f.y;
  }
  return r;
}

// Rows [first, first + 32) of a head to shared memory; zeros from row `end` on.
template <int kDim, int kPitch>
__device__ inline void stage(__half* tile, __half const* head, int first, int end) {
  for (int i = threadIdx.x; i < 32 * kDim / 8; i += kThreads) {
    int const r = i / (kDim / 8), c = i % (kDim / 8) * 8;
    uint4 const zero = {0u, 0u, 0u, 0u};
    *reinterpret_cast<uint4*>(tile + r * kPitch + c) =
        first + r < end ? *reinterpret_cast<uint4 const*>(head + size_t(first + r) * kDim + c) : zero;
  }
}

}  // namespace

template <int kDim, bool kCausal>
__global__ void __launch_bounds__(kThreads)
weir_slice(__half const* __restrict__ q, __half const* __restrict__ k, __half const* __restrict__ v,
           float* __restrict__ partOut, float* __restrict__ partSum, float* __restrict__ partMax,
           int seq, int chunk, float scale) {
  constexpr int kPitch = kDim + 8;
  constexpr int kPieces = kDim / (8 * kLanes);   // pieces of eight columns that a lane accumulates
  __shared__ __align__(16) __half qs[kQueries * kPitch];
  __shared__ __align__(16) __half ks[kKeys * kPitch];
  __shared__ __align__(16) __half vs[kKeys * kPitch];

  int const firstQuery = blockIdx.x * kQueries;
  int const begin = blockIdx.y * chunk;
  int end = min(seq, begin + chunk);
  if (kCausal) end = min(end, firstQuery + kQueries);
  if (begin >= end) return;                      // part_max says so to the second launch

  size_t const head = size_t(blockIdx.z) * seq * kDim;
  int const lane = threadIdx.x % kLanes, group = threadIdx.x / kLanes;
  float const toLog2 = scale * 1.4426950408889634f;

  stage<kDim, kPitch>(qs, q + head, firstQuery, seq);

  float acc[2][kPieces * 8] = {};
  float top[2] = {negInf(), negInf()};
  float sum[2] = {0.0f, 0.0f};

  for (int first = begin; first < end; first += kKeys) {
    __syncthreads();                             // the last tile is used up
    stage<kDim, kPitch>(ks, k + head, first, end);
    stage<kDim, kPitch>(vs, v + head, first, end);
    __syncthreads();

    // Two queries by four keys in registers.
    float s[2][kKeysPerLane] = {};
#pragma unroll 2
    for (int c = 0; c < kDim; c += 8) {
      Eight const a = loadEight(qs + group * kPitch + c);
      Eight const b = loadEight(qs + (group + kGroups) * kPitch + c);
#pragma unroll
      for (int j = 0; j < kKeysPerLane; ++j) {
        Eight const key = loadEight(ks + (lane + j * kLanes) * kPitch + c);
#pragma unroll
        for (int i = 0; i < 8; ++i) {
          s[0][j] += a.x[i] * key.x[i];
          s[1][j] += b.x[i] * key.x[i];
        }
      }
    }

#pragma unroll
    for (int r = 0; r < 2; ++r) {
      int const query = firstQuery + group + r * kGroups;
      float high = top[r];
#pragma unroll
      for (int j = 0; j < kKeysPerLane; ++j) {
        int const key = first + lane + j * kLanes;
        bool const seen = key < end && !(kCausal && key > query);
        s[r][j] = seen ? s[r][j] * toLog2 : negInf();
        high = fmaxf(high, s[r][j]);
      }
#pragma unroll
      for (int step = 1; step < kLanes; step *= 2)
        high = fmaxf(high, __shfl_xor_sync(kWarp, high, step));
      // No key of this slice seen so far: any finite offset gives weights of zero.
      float const offset = high == negInf() ? 0.0f : high;
      float const shrink = exp2f(top[r] - offset);
      top[r] = high;
      sum[r] *= shrink;
#pragma unroll
      for (int j = 0; j < kKeysPerLane; ++j) {
        s[r][j] = exp2f(s[r][j] - offset);
        sum[r] += s[r][j];
      }
#pragma unroll
      for (int i = 0; i < kPieces * 8; ++i) acc[r][i] *= shrink;
    }

    // The weight of key l + 8j is in lane l's s[.][j].
#pragma unroll
    for (int j = 0; j < kKeysPerLane; ++j)
#pragma unroll
      for (int l = 0; l < kLanes; ++l) {
        float const w0 = __shfl_sync(kWarp, s[0][j], l, kLanes);
        float const w1 = __shfl_sync(kWarp, s[1][j], l, kLanes);
#pragma unroll
        for (int p = 0; p < kPieces; ++p) {
          Eight const value = loadEight(vs + (l + j * kLanes) * kPitch + (p * kLanes + lane) * 8);
#pragma unroll
          for (int i = 0; i < 8; ++i) {
            acc[0][p * 8 + i] += w0 * value.x[i];
            acc[1][p * 8 + i] += w1 * value.x[i];
          }
        }
      }
  }

#pragma unroll
  for (int r = 0; r < 2; ++r) {
#pragma unroll
    for (int step = kLanes / 2; step > 0; step /= 2) sum[r] += __shfl_xor_sync(kWarp, sum[r], step);
    int const query = firstQuery + group + r * kGroups;
    if (query >= seq) continue;
    size_t const rows = size_t(gridDim.z) * seq;
    size_t const slot = blockIdx.y * rows + size_t(blockIdx.z) * seq + query;
    if (lane == 0) {
      partMax[slot] = top[r];
      partSum[slot] = sum[r];
    }
#pragma unroll
    for (int p = 0; p < kPieces; ++p) {
      float4* to = reinterpret_cast<float4*>(partOut + slot * kDim + (p * kLanes + lane) * 8);
      float const* a = acc[r] + p * 8;
      to[0] = make_float4(a[0], a[1], a[2], a[3]);
      to[1] = make_float4(a[4], a[5], a[6], a[7]);
    }
  }
}

// A warp for each row of the output.
template <int kDim>
__global__ void __launch_bounds__(kThreads)
weir_fold(float const* __restrict__ partOut, float const* __restrict__ partSum,
          float const* __restrict__ partMax, __half* __restrict__ out, int rows) {
  int const row = blockIdx.x * (kThreads / 32) + threadIdx.x / 32, lane = threadIdx.x % 32;
  if (row >= rows) return;

  float high = negInf();
  for (int s = 0; s < SLICES; ++s) high = fmaxf(high, partMax[size_t(s) * rows + row]);

  float total = 0.0f;
  float2 result[kDim / 64] = {};
  for (int s = 0; s < SLICES; ++s) {
    size_t const slot = size_t(s) * rows + row;
    if (partMax[slot] == negInf()) continue;     // nothing was written for this row
    float const w = exp2f(partMax[slot] - high);
    total += w * partSum[slot];
#pragma unroll
    for (int i = 0; i < kDim / 64; ++i) {
      float2 const x = *reinterpret_cast<float2 const*>(partOut + slot * kDim + i * 64 + lane * 2);
      result[i].x += w * x.x;
      result[i].y += w * x.y;
    }
  }
#pragma unroll
  for (int i = 0; i < kDim / 64; ++i)
    *reinterpret_cast<__half2*>(out + size_t(row) * kDim + i * 64 + lane * 2) =
        __floats2half2_rn(result[i].x / total, result[i].y / total);
}
