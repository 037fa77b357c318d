/* evoengine
name: rms_norm_virtual_steps
precision: fp32
summary: the two passes as objects with a virtual function, chosen at run time, and a table of function pointers
launches:
  - kernel: rms_norm
    grid: [N]
    block: [128]
    args: [x, weight, out, C, eps]
*/
typedef float (*Combine)(float, float);
__device__ float add(float a, float b) { return a + b; }
__device__ float add_swapped(float a, float b) { return b + a; }
__device__ const Combine combine[2] = {add, add_swapped};

struct Step {
    __device__ virtual float apply(float value, int column) const = 0;
};
struct Square : Step {
    __device__ float apply(float value, int) const override { return value * value; }
};
struct Scale : Step {
    const float* weight;
    float factor;
    __device__ Scale(const float* w, float f) : weight(w), factor(f) {}
    __device__ float apply(float value, int column) const override { return value * factor * weight[column]; }
};

__device__ __noinline__ float sum_of(const Step* step, const float* row, int C) {
    float s = 0.0f;
    for (int i = threadIdx.x; i < C; i += 128) s = combine[i % 2](s, step->apply(row[i], i));
    return s;
}
__device__ __noinline__ void store(const Step* step, const float* row, float* out, int C) {
    for (int i = threadIdx.x; i < C; i += 128) out[i] = step->apply(row[i], i);
}

__global__ void rms_norm(const float* x, const float* weight, float* out, int C, float eps) {
    __shared__ float sums[128];
    const float* row = x + (size_t)blockIdx.x * C;
    Square square;
    sums[threadIdx.x] = sum_of(&square, row, C);
    __syncthreads();
    float s = 0.0f;
    for (int i = 0; i < 128; i++) s += sums[i];
    Scale scale(weight, 1.0f / sqrtf(s / C + eps));
    store(&scale, row, out + (size_t)blockIdx.x * C, C);
}
