/* evoengine
name: scan_long_chained
precision: exact
summary: one pass; every block waits for the sum of all before it, which the block before publishes, and hands it on
let:
  BLOCKS: ceil_div(T, 4096)
scratch:
  words: {dtype: int64, shape: [BLOCKS], init: 0}
  next: {dtype: int32, shape: [1], init: 0}
launches:
  - kernel: scan
    grid: [BLOCKS]
    block: [512]
    args: [x, out, words, next, T]
*/
// A word: 1 in its upper half once it is written, the sum of all blocks up to it in the lower one.
typedef unsigned long long Word;

__global__ void __launch_bounds__(512)
scan(const int* __restrict__ x, int* __restrict__ out, Word* words, int* next, int T) {
    __shared__ int of_warp[16], shared_block, shared_before;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    if (threadIdx.x == 0) shared_block = atomicAdd(next, 1);
    __syncthreads();
    const int block = shared_block, first = block * 4096 + threadIdx.x * 8;
    int v[8];
#pragma unroll
    for (int i = 0; i < 8; i += 4) {
        if (first + i + 4 <= T) {
            const int4 four = *reinterpret_cast<const int4*>(x + first + i);
            v[i] = four.x, v[i + 1] = four.y, v[i + 2] = four.z, v[i + 3] = four.w;
        } else {
            for (int j = i; j < i + 4; ++j) v[j] = first + j < T ? x[first + j] : 0;
        }
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
    for (int i = 0; i < 16; ++i) {
        if (i == warp) before += all;
        all += of_warp[i];
    }
    if (threadIdx.x == 0) {
        Word seen = Word(1) << 32;
        if (block) do { seen = *reinterpret_cast<volatile Word*>(words + block - 1); } while (seen >> 32 == 0);
        const int sum = int(unsigned(seen));
        atomicExch(words + block, Word(1) << 32 | unsigned(sum + all));
        shared_before = sum;
    }
    __syncthreads();
    before += shared_before;
#pragma unroll
    for (int i = 0; i < 8; i += 4) {
        if (first + i + 4 <= T)
            *reinterpret_cast<int4*>(out + first + i) = make_int4(v[i] + before, v[i + 1] + before, v[i + 2] + before, v[i + 3] + before);
        else
            for (int j = i; j < i + 4; ++j)
                if (first + j < T) out[first + j] = v[j] + before;
    }
}
