/* evoengine
name: coarse_group_sums
precision: fp32
summary: aligned groups of indices that lie in one bag are summed first; a bag then adds its groups and the single indices at its ends
tunables:
  GROUP: [8, 16, 32]       # indices of a group
  ROWS: [4, 8, 2]          # threads that share a bag's column
  COLUMNS: [16, 32]        # float4 columns of a block
let:
  D4: D // 4
  GROUPS: T // GROUP       # whole ones; nobody needs the rest
scratch:
  coarse: {dtype: float32, shape: ["max(GROUPS, 1)", D]}
launches:
  - kernel: sum_groups<GROUP>
    grid: ["ceil_div(max(GROUPS, 1), 4)"]
    block: [32, 4]
    args: [table, indices, offsets, coarse, GROUPS, BAGS, D4]
  - kernel: sum_bags<GROUP, ROWS>
    grid: [BAGS, "ceil_div(D4, COLUMNS)"]
    block: [COLUMNS, ROWS]
    shared: 16 * COLUMNS * ROWS
    args: [table, indices, offsets, coarse, out, D4]
*/

// Square-root decomposition of the index list. With G = 8:
//
//   groups    |   0   |   1   |   2   |   3   |   4   |
//   bags      [    a     )[          b            )[ c )
//   b:                    ...         sums singly to the next border of a group (head),
//                            |-------|-------|      then whole groups from `coarse`,
//                                             ..    then singly to its end (tail)
//
// A group that two bags share is never read, so the first launch leaves it alone.

template <typename T>
__device__ T smaller(T a, T b) { return b < a ? b : a; }
template <typename T>
__device__ T larger(T a, T b) { return a < b ? b : a; }

struct alignas(16) quad {
    float v[4];

    __device__ quad& operator+=(const quad& other) {
        for (int i = 0; i < 4; ++i) v[i] += other.v[i];
        return *this;
    }
};

// A row-major matrix whose rows are `width` quads.
template <typename Quad>
struct matrix {
    Quad* data;
    int width;

    __device__ Quad& operator()(int row, int column) const {
        return data[static_cast<long long>(row) * width + column];
    }
};

template <int G>
struct extent {
    int begin, head_end;           // single indices
    int first_group, last_group;   // whole groups, the last one exclusive
    int tail_begin, end;           // single indices

    __device__ extent(int from, int to) : begin(from), end(to) {
        first_group = (from + G - 1) / G;
        last_group = to / G;
        head_end = smaller(first_group * G, to);
        // a bag that lies in one group and ends before its border is all head
        tail_begin = larger(head_end, last_group * G);
    }
};

// The last bag that begins at or before `place`. Of several that begin there, only the last has it.
__device__ int bag_at(const int* offsets, int bags, int place) {
    int low = 0, high = bags;
    while (high - low > 1) {
        const int middle = (low + high) / 2;
        if (offsets[middle] <= place)
            low = middle;
        else
            high = middle;
    }
    return low;
}

template <int G>
__global__ void sum_groups(const float* table, const int* indices, const int* offsets, float* coarse,
                           int groups, int bags, int width) {
    const int group = blockIdx.x * blockDim.y + threadIdx.y;
    if (group >= groups) return;

    const int from = group * G, to = from + G;
    const int bag = bag_at(offsets, bags, from);
    const bool within = offsets[bag + 1] >= to;
    if (!within) return;

    const matrix<const quad> rows{reinterpret_cast<const quad*>(table), width};
    const matrix<quad> sums{reinterpret_cast<quad*>(coarse), width};
    for (int column = threadIdx.x; column < width; column += blockDim.x) {
        quad sum = {};
#pragma unroll
        for (int i = 0; i < G; ++i) sum += rows(indices[from + i], column);
        sums(group, column) = sum;
    }
}

template <int G, int R>
__global__ void sum_bags(const float* table, const int* indices, const int* offsets, const float* coarse,
                         float* out, int width) {
    static_assert((R & (R - 1)) == 0, "the rows are added in halves");
    extern __shared__ quad parts[];   // [R][blockDim.x]

    const int bag = blockIdx.x;
    const int column = blockIdx.y * blockDim.x + threadIdx.x;
    const int row = threadIdx.y;
    const bool inside = column < width;

    quad sum = {};
    if (inside) {
        const matrix<const quad> rows{reinterpret_cast<const quad*>(table), width};
        const matrix<const quad> sums{reinterpret_cast<const quad*>(coarse), width};
        const extent<G> part(offsets[bag], offsets[bag + 1]);

        for (int i = part.begin + row; i < part.head_end; i += R) sum += rows(indices[i], column);
        for (int g = part.first_group + row; g < part.last_group; g += R) sum += sums(g, column);
        for (int i = part.tail_begin + row; i < part.end; i += R) sum += rows(indices[i], column);
    }

    quad* mine = parts + row * blockDim.x + threadIdx.x;
    *mine = sum;
    for (int half = R / 2; half > 0; half /= 2) {
        __syncthreads();
        if (row < half) *mine += mine[half * blockDim.x];
    }
    if (inside && row == 0)
        matrix<quad>{reinterpret_cast<quad*>(out), width}(bag, column) = *mine;
}
