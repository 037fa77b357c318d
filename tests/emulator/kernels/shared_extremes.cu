// The extremes of a row in shared memory, looked at before they are changed: a loop around atomicCAS, and a comparison before atomicMin.
extern "C" __global__ void shared_extremes(const float* x, float* largest, int* first, int width) {
    __shared__ int top, place;
    const float* row = x + blockIdx.x * width;
    if (threadIdx.x == 0) top = __float_as_int(row[0]), place = width;
    __syncthreads();
    for (int i = threadIdx.x; i < width; i += blockDim.x) {
        int seen = top;
        while (__int_as_float(seen) < row[i]) {
            const int before = atomicCAS(&top, seen, __float_as_int(row[i]));
            if (before == seen) break;
            seen = before;
        }
        if (row[i] > 1.0f && i < place) atomicMin(&place, i);
    }
    __syncthreads();
    if (threadIdx.x == 0) largest[blockIdx.x] = __int_as_float(top), first[blockIdx.x] = place;
}
