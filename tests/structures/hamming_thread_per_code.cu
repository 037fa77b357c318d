/* evoengine
name: hamming_thread_per_code
precision: exact
summary: a thread a code in registers; the others lie in shared memory, and bits are counted word by word
launches:
  - kernel: nearest
    grid: ["ceil_div(N, 128)"]
    block: [128]
    args: [codes, others, out, N, Q]
*/
__global__ void __launch_bounds__(128)
nearest(const int* __restrict__ codes, const int* __restrict__ others, int* __restrict__ out, int N, int Q) {
    __shared__ int4 of_others[256][2];
    for (int i = threadIdx.x; i < Q * 2; i += 128) of_others[i / 2][i % 2] = reinterpret_cast<const int4*>(others)[i];
    __syncthreads();
    const int own = blockIdx.x * 128 + threadIdx.x;
    if (own >= N) return;
    const int4 a = reinterpret_cast<const int4*>(codes)[own * 2], b = reinterpret_cast<const int4*>(codes)[own * 2 + 1];
    int least = 256;
    for (int q = 0; q < Q; ++q) {
        const int4 c = of_others[q][0], d = of_others[q][1];
        const int bits = __popc(a.x ^ c.x) + __popc(a.y ^ c.y) + __popc(a.z ^ c.z) + __popc(a.w ^ c.w)
                       + __popc(b.x ^ d.x) + __popc(b.y ^ d.y) + __popc(b.z ^ d.z) + __popc(b.w ^ d.w);
        least = min(least, bits);
    }
    out[own] = least;
}
