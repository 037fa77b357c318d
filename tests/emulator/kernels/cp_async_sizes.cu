// Copies of 4, 8 and 16 bytes that do not pass through registers. Beyond `count` bytes the source is cut short: the rest becomes zero.
__device__ __forceinline__ int left(int at, int count, int size) { return max(0, min(size, count - at)); }

__global__ void cp_async_sizes(const unsigned char* in, unsigned char* out, int count) {
    __shared__ __align__(16) unsigned char four[32 * 4], eight[32 * 8], sixteen[32 * 16];
    const int lane = threadIdx.x, block = blockIdx.x;
    const unsigned to4 = __cvta_generic_to_shared(&four[lane * 4]), to8 = __cvta_generic_to_shared(&eight[lane * 8]),
                   to16 = __cvta_generic_to_shared(&sixteen[lane * 16]);
    const int at4 = block * 128 + lane * 4, at8 = block * 256 + lane * 8, at16 = block * 512 + lane * 16;
    const int n4 = left(at4, count, 4), n8 = left(at8, count, 8), n16 = left(at16, count, 16);
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(to4), "l"(in + (n4 ? at4 : 0)), "r"(n4) : "memory");
    asm volatile("cp.async.ca.shared.global [%0], [%1], 8, %2;" ::"r"(to8), "l"(in + (n8 ? at8 : 0)), "r"(n8) : "memory");
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to16), "l"(in + (n16 ? at16 : 0)), "r"(n16) : "memory");
    asm volatile("cp.async.wait_all;" ::: "memory");
    __syncthreads();
    unsigned char* mine = out + block * 896;
    for (int i = lane; i < 128; i += 32) mine[i] = four[i];
    for (int i = lane; i < 256; i += 32) mine[128 + i] = eight[i];
    for (int i = lane; i < 512; i += 32) mine[384 + i] = sixteen[i];
}
