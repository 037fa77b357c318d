/* evoengine
name: rotary_threads
precision: fp32
summary: a thread turns one pair
launches:
  - kernel: turn
    grid: ["ceil_div(T * H * D // 2, 256)"]
    block: [256]
    args: [x, cosines, sines, out, T, H, D]
*/
__global__ void turn(const float* x, const float* cosines, const float* sines, float* out, int T, int H, int D) {
    const int pairs = D / 2;
    const int number = blockIdx.x * 256 + threadIdx.x;
    if (number >= T * H * pairs) return;
    const int pair = number % pairs, token = number / pairs / H;
    const float c = cosines[token * pairs + pair], s = sines[token * pairs + pair];
    const float even = x[number * 2], odd = x[number * 2 + 1];
    out[number * 2] = even * c - odd * s;
    out[number * 2 + 1] = odd * c + even * s;
}
