// Lanes with the same key elect one that adds for all of them.
extern "C" __global__ void histogram_match_any(const int* keys, int* bins, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned active = __ballot_sync(0xffffffff, i < n);
    if (i < n) {
        int key = keys[i];
        unsigned peers = __match_any_sync(active, key);
        int leader = __ffs(peers) - 1;
        int lane = threadIdx.x % 32;
        if (lane == leader) atomicAdd(bins + key, __popc(peers));
    }
}
