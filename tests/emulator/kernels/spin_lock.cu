// A critical section in global memory: one thread of each warp takes the lock by compare-and-swap, the rest wait at a warp barrier.
__device__ int lock = 0;

__global__ void spin_lock(volatile int* shared_list, volatile int* length) {
    if (threadIdx.x % 32 == 0) {
        while (atomicCAS(&lock, 0, 1) != 0) {
        }
        __threadfence();
        int at = *length;
        shared_list[at] = 100 + at;
        *length = at + 1;
        __threadfence();
        atomicExch(&lock, 0);
    }
    __syncwarp();
}
