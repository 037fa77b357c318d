// Steps until 1 and the highest number on the way.
extern "C" __global__ void collatz(const unsigned int* start, unsigned int* steps, unsigned long long* peak, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        unsigned long long v = start[i], top = v;
        unsigned int count = 0;
        while (v != 1ull) {
            if (v & 1ull)
                v = 3ull * v + 1ull;
            else
                v >>= 1;
            top = v > top ? v : top;
            count++;
        }
        steps[i] = count;
        peak[i] = top;
    }
}
