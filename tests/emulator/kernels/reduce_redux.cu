// The reductions over a warp that sm_80 has as one instruction.
struct Reduced {
    unsigned int sum, smallest, largest, all, any, parity;
    int signed_smallest, signed_largest;
};

extern "C" __global__ void reduce_redux(const unsigned int* in, Reduced* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int lane = threadIdx.x & 31;
    unsigned int mask = __ballot_sync(0xffffffffu, i < n);
    if (i >= n) return;

    unsigned int x = in[i];
    Reduced r;
    r.sum = __reduce_add_sync(mask, x);
    r.smallest = __reduce_min_sync(mask, x);
    r.largest = __reduce_max_sync(mask, x);
    r.all = __reduce_and_sync(mask, x);
    r.any = __reduce_or_sync(mask, x);
    r.parity = __reduce_xor_sync(mask, x);
    r.signed_smallest = __reduce_min_sync(mask, (int)x);
    r.signed_largest = __reduce_max_sync(mask, (int)x);
    if (lane == 0) out[i / 32] = r;
}
