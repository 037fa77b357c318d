// One atomic on global memory for every element.
extern "C" __global__ void histogram_global(const unsigned char* data, unsigned int* bins, size_t n) {
    size_t stride = (size_t)blockDim.x * gridDim.x;
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n; i += stride)
        atomicAdd(&bins[data[i]], 1u);
}
