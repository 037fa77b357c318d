// memcpy, memset and memmove with sizes that only the launch knows, of any alignment; a thread has a row.
#include <cuda/std/cstring>

extern "C" __global__ void bytes_moved(const unsigned char* from, unsigned char* to, const int* sizes, int pitch, int* orders) {
    __shared__ unsigned char tile[32 * 67];
    const int t = threadIdx.x, size = sizes[t];
    unsigned char *row = to + t * pitch, *own = tile + t * 67;
    memset(row, 7, pitch);
    memcpy(row + 1, from + t * pitch, size);
    memcpy(own, row, 67);
    memset(own + 3, t, 2);
    memmove(own + 5, own, size / 2);    // forwards, into itself
    memmove(row + 3, row + 8, size / 3);  // backwards
    cuda::std::memmove(row + pitch - 9, own + 1, 9);
    const void* seven = cuda::std::memchr(row, 7, pitch);
    orders[2 * t] = cuda::std::memcmp(row, own, 67) < 0;
    orders[2 * t + 1] = seven ? (int)(static_cast<const unsigned char*>(seven) - row) : -1;
}
