// float4 loads and stores; all sides are multiples of four.
__global__ void matmul_vectorised(const float* __restrict__ A, const float* __restrict__ B, float* __restrict__ C, int M, int N, int K) {
    __shared__ float4 Bs[32][8];                       // 32 x 32 floats of B
    const int tx = threadIdx.x, ty = threadIdx.y;      // 8 x 32 threads, four columns each
    const int row = blockIdx.y * 32 + ty, col = blockIdx.x * 32 + tx * 4;
    float4 acc = make_float4(0.f, 0.f, 0.f, 0.f);
    for (int k0 = 0; k0 < K; k0 += 32) {
        Bs[ty][tx] = k0 + ty < K && col < N ? *reinterpret_cast<const float4*>(&B[(k0 + ty) * N + col]) : make_float4(0.f, 0.f, 0.f, 0.f);
        __syncthreads();
        for (int k = 0; k < 32 && k0 + k < K; k += 4) {
            if (row < M) {
                const float4 a = __ldg(reinterpret_cast<const float4*>(&A[row * K + k0 + k]));
                const float parts[4] = {a.x, a.y, a.z, a.w};
#pragma unroll
                for (int i = 0; i < 4; ++i) {
                    const float4 b = Bs[k + i][tx];
                    acc.x = fmaf(parts[i], b.x, acc.x);
                    acc.y = fmaf(parts[i], b.y, acc.y);
                    acc.z = fmaf(parts[i], b.z, acc.z);
                    acc.w = fmaf(parts[i], b.w, acc.w);
                }
            }
        }
        __syncthreads();
    }
    if (row < M && col < N) *reinterpret_cast<float4*>(&C[row * N + col]) = acc;
}
