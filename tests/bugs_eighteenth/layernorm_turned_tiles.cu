/* evoengine
name: layernorm_turned_tiles
precision: fp32
summary: a block has 32 rows, of which tiles of 32 columns are read along rows and measured down them, a thread four columns of a row; moments of fours are merged by Chan's formula
launches:
  - kernel: normalise
    grid: ["ceil_div(N, 32)"]
    block: [32, 8]
    args: [x, weight, bias, out, N, C, eps]
*/
constexpr int ROWS = 32, COLUMNS = 32, TEAMS = 8, OWN = COLUMNS / TEAMS;

// So many numbers, their mean, and the sum of the squares of their deviations from it.
struct Moments {
    float count, mean, squares;
};

__device__ __forceinline__ void join(Moments& own, Moments more) {
    if (more.count == 0.0f) return;
    const float count = own.count + more.count, delta = more.mean - own.mean;
    own.squares += more.squares + delta * delta * own.count * more.count / count;
    own.mean += delta * more.count / count;
    own.count = count;
}

__global__ void __launch_bounds__(ROWS * TEAMS)
normalise(const float* __restrict__ x, const float* __restrict__ weight, const float* __restrict__ bias,
          float* __restrict__ out, int N, int C, float eps) {
    __shared__ float tile[ROWS][COLUMNS + 1], means[ROWS], inverses[ROWS];
    __shared__ Moments teams[TEAMS][ROWS];
    const int first = blockIdx.x * ROWS, rows = min(ROWS, N - first);

    Moments own = {0.0f, 0.0f, 0.0f};
    for (int start = 0; start < C; start += COLUMNS) {
        for (int r = threadIdx.y; r < ROWS; r += TEAMS) {
            const size_t row = size_t(first + r) * C;
            const bool inside = r < rows && start + threadIdx.x < C;
            tile[r][threadIdx.x] = inside ? x[row + start + threadIdx.x] - x[row] : 0.0f;   // less the first element
        }
        __syncthreads();
        const float* four = &tile[threadIdx.x][threadIdx.y * OWN];
        const int count = min(OWN, C - start - int(threadIdx.y) * OWN);
        if (count > 0) {
            float sum = 0.0f, squares = 0.0f;
            for (int j = 0; j < count; ++j) sum += four[j];
            const float mean = sum / count;
            for (int j = 0; j < count; ++j) squares = fmaf(four[j] - mean, four[j] - mean, squares);
            join(own, {float(count), mean, squares});
        }
        __syncthreads();   // the tile has been read
    }
    teams[threadIdx.y][threadIdx.x] = own;
    __syncthreads();
    if (threadIdx.y == 0) {
        for (int team = 1; team < TEAMS; ++team) join(own, teams[team][threadIdx.x]);
        means[threadIdx.x] = own.mean;
        inverses[threadIdx.x] = 1.0f / sqrtf(own.squares / C + eps);
    }
    __syncthreads();

    for (int r = threadIdx.y; r < rows; r += TEAMS) {
        const size_t row = size_t(first + r) * C;
        const float pivot = x[row], mean = means[r], inverse = inverses[r];
        for (int c = threadIdx.x; c < C; c += COLUMNS)
            out[row + c] = fmaf((x[row + c] - pivot - mean) * inverse, weight[c], bias[c]);
    }
}
