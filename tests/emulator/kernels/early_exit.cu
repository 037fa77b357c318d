// Returns in the middle, from inside a loop and from inside a nested branch; no barrier anywhere.
extern "C" __global__ void early_exit(const int* x, int* out, int* found_at, int n, int target) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    out[i] = -1;
    int v = x[i];
    if (v < 0) {
        out[i] = -v;
        return;
    }
    for (int k = 0; k < 20; ++k) {
        if (v % 7 == 3) {
            out[i] = 1000 + k;
            if (v & 1) return;
            out[i] += 1000;
            if (v > 50) {
                atomicMin(found_at, i);
                return;
            }
        }
        if (v == target) {
            out[i] = 77;
            return;
        }
        v += i & 3;
    }
    out[i] += v;
}
