/* evoengine
name: scan_long_look_back
precision: exact
summary: one pass; a block publishes the sum of its numbers, looks back over those of the blocks before it, a warp at a time, and publishes the sum of all
let:
  BLOCKS: ceil_div(T, 2048)
scratch:
  words: {dtype: int64, shape: [BLOCKS], init: 0}
  next: {dtype: int32, shape: [1], init: 0}
launches:
  - kernel: scan
    grid: [BLOCKS]
    block: [256]
    args: [x, out, words, next, T]
*/
// A word: the state in its upper half (1: the sum of the block, 2: the sum of all blocks up to it), the sum in the lower one.
typedef unsigned long long Word;

__device__ __forceinline__ Word word(unsigned state, int sum) { return Word(state) << 32 | unsigned(sum); }

__global__ void __launch_bounds__(256)
scan(const int* __restrict__ x, int* __restrict__ out, Word* words, int* next, int T) {
    __shared__ int of_warp[8], shared_block, shared_before;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    if (threadIdx.x == 0) shared_block = atomicAdd(next, 1);
    __syncthreads();
    const int block = shared_block, first = block * 2048 + threadIdx.x * 8;
    int v[8];
    if (first + 8 <= T) {
        *reinterpret_cast<int4*>(v) = reinterpret_cast<const int4*>(x + first)[0];
        *reinterpret_cast<int4*>(v + 4) = reinterpret_cast<const int4*>(x + first)[1];
    } else {
#pragma unroll
        for (int i = 0; i < 8; ++i) v[i] = first + i < T ? x[first + i] : 0;
    }
#pragma unroll
    for (int i = 1; i < 8; ++i) v[i] += v[i - 1];
    int before = v[7];
#pragma unroll
    for (int step = 1; step < 32; step *= 2) {
        const int other = __shfl_up_sync(~0u, before, step);
        if (lane >= step) before += other;
    }
    if (lane == 31) of_warp[warp] = before;
    before -= v[7];
    __syncthreads();
    int all = 0;
#pragma unroll
    for (int i = 0; i < 8; ++i) {
        if (i == warp) before += all;
        all += of_warp[i];
    }
    if (warp == 0) {
        if (lane == 0) atomicExch(words + block, word(block ? 1u : 2u, all));
        int sum = 0;
        for (int behind = block - 1; behind >= 0; behind -= 32) {
            const int at = behind - lane;
            Word seen = word(2u, 0);
            if (at >= 0) do { seen = *reinterpret_cast<volatile Word*>(words + at); } while (seen >> 32 == 0);
            const unsigned whole = __ballot_sync(~0u, seen >> 32 == 2);
            const int nearest = whole ? __ffs(whole) - 1 : 31;   // lanes beyond it are in its sum
            int part = lane <= nearest ? int(unsigned(seen)) : 0;
#pragma unroll
            for (int step = 16; step; step /= 2) part += __shfl_xor_sync(~0u, part, step);
            sum += part;
            if (whole) break;
        }
        if (lane == 0) {
            if (block) atomicExch(words + block, word(2u, sum + all));
            shared_before = sum;
        }
    }
    __syncthreads();
    before += shared_before;
#pragma unroll
    for (int i = 0; i < 8; ++i) v[i] += before;
    if (first + 8 <= T) {
        reinterpret_cast<int4*>(out + first)[0] = *reinterpret_cast<int4*>(v);
        reinterpret_cast<int4*>(out + first)[1] = *reinterpret_cast<int4*>(v + 4);
    } else {
#pragma unroll
        for (int i = 0; i < 8; ++i)
            if (first + i < T) out[first + i] = v[i];
    }
}
