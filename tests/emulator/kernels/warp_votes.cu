// any, all, ballot and match, over the whole warp and over a part of it.
extern "C" __global__ void warp_votes(const int* x, unsigned int* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int lane = threadIdx.x & 31;
    int v = i < n ? x[i] : -1;
    unsigned int whole[4];
    whole[0] = __any_sync(0xffffffffu, v > 90);
    whole[1] = __all_sync(0xffffffffu, v >= 0);
    whole[2] = __ballot_sync(0xffffffffu, v & 1);
    whole[3] = __match_any_sync(0xffffffffu, v >> 4);
    int same;
    unsigned int all_match = __match_all_sync(0xffffffffu, v < 1000, &same);
    unsigned int part = 0, low = 0;
    if (lane < 20) {
        part = __ballot_sync(0x000fffffu, v > 50);
        low = __all_sync(0x000fffffu, v < 99) | __any_sync(0x000fffffu, v == 7) << 1;
    } else {
        part = __match_any_sync(0xfff00000u, (unsigned long long)v % 3);
        low = __popc(__ballot_sync(0xfff00000u, 1));
    }
    if (i < n) {
        unsigned int* o = out + 8 * i;
        for (int k = 0; k < 4; ++k) o[k] = whole[k];
        o[4] = all_match;
        o[5] = same;
        o[6] = part;
        o[7] = low;
    }
}
