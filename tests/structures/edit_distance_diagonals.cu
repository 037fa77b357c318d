/* evoengine
name: edit_distance_diagonals
precision: exact
summary: a warp a pair of words; lane by lane the diagonals of their table, each from the two before through shuffles
launches:
  - kernel: distance
    grid: ["ceil_div(B, 4)"]
    block: [128]
    args: [words, others, out, B]
*/
__global__ void __launch_bounds__(128) distance(const int* __restrict__ words, const int* __restrict__ others, int* __restrict__ out, int B) {
    const int pair = blockIdx.x * 4 + threadIdx.x / 32, lane = threadIdx.x % 32;
    if (pair >= B) return;
    const int letter = words[pair * 32 + lane], other = others[pair * 32 + lane];
    // This lane's row of the table is lane + 1; in round r it comes to column r - lane + 1.
    int left = lane + 1, above = 0, corner = lane;   // corner: the row above, one column to the left
    int own = left;
    for (int round = 0; round < 63; ++round) {
        const int column = round - lane;
        above = __shfl_up_sync(~0u, own, 1);
        const int compared = __shfl_sync(~0u, other, column & 31);
        if (lane == 0) above = column + 1;
        if (column >= 0 && column < 32) {
            own = min(min(above, left) + 1, corner + (letter != compared));
            left = own;
            corner = above;
        }
    }
    if (lane == 31) out[pair] = own;
}
