/* evoengine
name: scatter_add
precision: fp32
summary: the output is cleared, then each element of the source is added by an atomic
launches:
  - kernel: clear
    grid: ["ceil_div(V*D, 128)"]
    block: [128]
    args: [out, V*D]
  - kernel: scatter_add
    grid: ["ceil_div(T*D, 128)"]
    block: [128]
    args: [source, index, out, T, D]
*/
__global__ void clear(float* out, int count) {
    const int i = blockIdx.x * 128 + threadIdx.x;
    if (i < count) out[i] = 0.0f;
}

__global__ void scatter_add(const float* source, const int* index, float* out, int T, int D) {
    const int i = blockIdx.x * 128 + threadIdx.x;
    if (i >= T * D) return;
    const int t = i / D, d = i % D;
    atomicAdd(&out[index[t] * D + d], source[i]);
}
