// Variables of the module: initialised scalars and arrays, one that is zero, a struct, a pointer to another, and a counter.
__device__ int numbers[6] = {3, 1, 4, 1, 5, 9};
__device__ float cleared[300];
__device__ unsigned long long ticket = 1000000000000ull;
__device__ struct {
    char letter;
    double value;
} thing = {'z', -2.5};
__device__ int* alias = numbers + 2;
__device__ const char text[] = "device";

extern "C" __global__ void device_globals(int* a, float* b, double* c, unsigned long long* last, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        a[i] = numbers[i % 6] + 10 * alias[i % 4] + 1000 * text[i % 6];
        b[i] = cleared[i] + 1.0f;
        cleared[i] = 5.0f + i;
        b[i] += cleared[i];
        c[i] = thing.value * thing.letter;
        unsigned long long mine = atomicAdd(&ticket, 3ull);
        atomicMax(last, mine);
    }
}
