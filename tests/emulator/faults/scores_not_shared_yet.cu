// Attention for one query: every thread has a score, all of them need all scores.
__global__ void __launch_bounds__(64) scores_not_shared_yet(const float* q, const float* k, const float* v, float* out) {
    __shared__ float scores[64];
    const int t = threadIdx.x;
    float score = 0.0f;
    for (int d = 0; d < 16; ++d) score += q[blockIdx.x * 16 + d] * k[t * 16 + d];
    scores[t] = __expf(score);
#ifdef FIXED
    __syncthreads();
#endif
    if (t >= 16) return;
    float sum = 0.0f, acc = 0.0f;
    for (int j = 0; j < 64; ++j) {
        sum += scores[j];    // FAULT
        acc += scores[j] * v[j * 16 + t];
    }
    out[blockIdx.x * 16 + t] = acc / sum;
}
