/* evoengine
name: swiglu_block_rows
precision: fp32
summary: a block has a row, which waits in shared memory until an atomic maximum of bit patterns has its scale
launches:
  - kernel: quantise
    grid: [T]
    block: [128]
    shared: 4*C
    args: [x, smooth, packed, scales, C, least]
*/
__global__ void quantise(const float* x, const float* smooth, signed char* packed, float* scales, int C, float least) {
    extern __shared__ float products[];
    __shared__ int largest;  // bits of a float: those that are not negative keep their order as integers
    const float* gate = x + size_t(blockIdx.x) * 2 * C;
    const float* up = gate + C;
    if (threadIdx.x == 0) largest = 0;
    __syncthreads();
    float own = 0.0f;
    for (int i = threadIdx.x; i < C; i += 128) {
        const float activated = gate[i] / (1.0f + expf(-gate[i]));
        const float product = activated * up[i] * smooth[i];
        products[i] = product;
        own = fmaxf(own, fabsf(product));
    }
    atomicMax(&largest, __float_as_int(own));
    __syncthreads();
    const float scale = fmaxf(__int_as_float(largest), least) / 127.0f;
    if (threadIdx.x == 0) scales[blockIdx.x] = scale;
    for (int i = threadIdx.x; i < C; i += 128)
        packed[size_t(blockIdx.x) * C + i] = static_cast<signed char>(rintf(products[i] / scale));
}
