// Lanes take work until none of them has any: a loop that the whole warp leaves together by a vote.
extern "C" __global__ void warp_queue(const int* work, int* out, int* turns, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int left = i < n ? work[i] : 0;
    int done = 0, turn = 0;
    while (__any_sync(0xffffffffu, left > 0)) {
        int busiest = left;
        for (int d = 16; d > 0; d >>= 1) busiest = max(busiest, __shfl_xor_sync(0xffffffffu, busiest, d));
        if (left > 0) {
            int take = left == busiest ? 2 : 1;
            take = take < left ? take : left;
            left -= take;
            done += take * (turn + 1);
        }
        __syncwarp();
        ++turn;
    }
    if (i < n) out[i] = done;
    if (threadIdx.x % 32 == 0) turns[i / 32] = turn;
}
