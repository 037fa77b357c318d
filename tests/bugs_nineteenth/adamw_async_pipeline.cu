/* evoengine
name: adamw_async_pipeline
precision: fp32
summary: a few blocks walk over tiles of 256 elements, of which cp.async brings the four tensors into two stages of shared memory; a thread updates one element of a tile
launches:
  - kernel: pipeline
    grid: ["min(ceil_div(N, 256), 3)"]
    block: [256]
    args:
      - gradient
      - parameter
      - first
      - second
      - N
      - beta1
      - beta2
      - {value: 1 - beta1, dtype: float32}
      - {value: 1 - beta2, dtype: float32}
      - {value: rate * decay, dtype: float32}
      - {value: rate / correction1, dtype: float32}
      - {value: 1 / sqrt(correction2), dtype: float32}
      - eps
*/
constexpr int TILE = 256, VECTORS = TILE / 4;

__device__ __forceinline__ void copy_16(float* to, const float* from, int bytes) {
    const unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(to));
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(address), "l"(from), "r"(bytes) : "memory");
}

__global__ void __launch_bounds__(TILE)
pipeline(const float* gradient, float* parameter, float* first, float* second, int N, float beta1, float beta2, float new1,
         float new2, float shrink, float step, float root_scale, float eps) {
    __shared__ __align__(16) float stages[2][4][TILE];   // gradient, parameter, first and second moment

    // A quarter of the threads has a tensor, and each of them a vector of the tile.
    const int tensor = threadIdx.x / VECTORS, vector = threadIdx.x % VECTORS;
    const float* source = tensor == 0 ? gradient : tensor == 1 ? parameter : tensor == 2 ? first : second;
    const int tiles = (N + TILE - 1) / TILE;
    auto bring = [&](int tile, int stage) {
        const int at = tile * TILE + vector * 4;
        const int left = max(0, min(4, N - at));
        copy_16(&stages[stage][tensor][vector * 4], left > 0 ? source + at : source, left * 4);
        asm volatile("cp.async.commit_group;" ::: "memory");
    };

    int stage = 0;
    bring(blockIdx.x, stage);
    for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        const int next = tile + gridDim.x;
        if (next < tiles) {
            bring(next, stage ^ 1);
            asm volatile("cp.async.wait_group 1;" ::: "memory");
        } else {
            asm volatile("cp.async.wait_group 0;" ::: "memory");
        }
        __syncthreads();

        const int i = tile * TILE + threadIdx.x;
        const float g = stages[stage][0][threadIdx.x];
        float p = stages[stage][1][threadIdx.x];
        const float m = beta1 * stages[stage][2][threadIdx.x] + new1 * g;
        const float v = beta2 * stages[stage][3][threadIdx.x] + new2 * g * g;
        p -= shrink * p;
        p -= step * m / (sqrtf(v) * root_scale + eps);
        if (i < N) {
            parameter[i] = p;
            first[i] = m;
            second[i] = v;
        }
        __syncthreads();   // the stage may be filled again
        stage ^= 1;
    }
}
