/* evoengine
name: polynomial_double
precision: fp64
summary: a thread two places, by Horner's rule in double precision; the factors come from global memory
launches:
  - kernel: polynomial
    grid: ["ceil_div(T, 512)"]
    block: [256]
    args: [x, factors, out, T, K]
*/
__global__ void __launch_bounds__(256)
polynomial(const double* __restrict__ x, const double* __restrict__ factors, double* __restrict__ out, int T, int K) {
    const int first = blockIdx.x * 512 + threadIdx.x, second = first + 256;
    const double one = first < T ? x[first] : 0.0, two = second < T ? x[second] : 0.0;
    double p = 0.0, q = 0.0;
#pragma unroll 8
    for (int k = 0; k < K; ++k) {
        const double factor = factors[k];
        p = p * one + factor;
        q = q * two + factor;
    }
    if (first < T) out[first] = p;
    if (second < T) out[second] = q;
}
