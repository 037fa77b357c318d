// Rotary position embedding, pairs of neighbours (interleaved) or of halves of the head.
template <bool INTERLEAVED>
__global__ void rope(float* q, const int* positions, int heads, int dim, float base) {
    const int token = blockIdx.x;
    const int half = dim / 2;
    const float pos = (float)positions[token];
    for (int t = threadIdx.x; t < heads * half; t += blockDim.x) {
        int head = t / half, i = t % half;
        float inv_freq = powf(base, -2.0f * i / dim);
        float sine, cosine;
        sincosf(pos * inv_freq, &sine, &cosine);
        float* row = q + ((size_t)token * heads + head) * dim;
        int first = INTERLEAVED ? 2 * i : i;
        int second = INTERLEAVED ? 2 * i + 1 : i + half;
        float x = row[first], y = row[second];
        row[first] = x * cosine - y * sine;
        row[second] = x * sine + y * cosine;
    }
}
