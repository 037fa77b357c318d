// keys[64] is the first of weights: seen because another thread writes that one.
struct Tile { float keys[64]; float weights[64]; };
__global__ void __launch_bounds__(64) shared_array_overrun(const float* in, float* out) {
    __shared__ Tile tile;
    const int t = threadIdx.x;
    tile.weights[t] = in[64 + t];
#ifdef FIXED
    tile.keys[t] = in[t];
#else
    if (t == 0) tile.keys[0] = 0.0f;
    float* key = &tile.keys[0] + 1;
    key[t] = in[t];    // FAULT
#endif
    __syncthreads();
    out[t] = tile.keys[63 - t] * tile.weights[63 - t];
}
