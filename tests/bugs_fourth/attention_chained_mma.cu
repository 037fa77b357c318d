/* evoengine
name: attention_chained_mma
precision: fp16
summary: two warps of 16 queries; scores stay in the registers of mma.sync and become its left operand, values are transposed by ldmatrix
launches:
  - kernel: attention<D, causal>
    grid: ["ceil_div(S, 32)", "B*H"]
    block: [64]
    args: [q, k, v, out, S, scale]
*/
#include <cuda_fp16.h>

constexpr int ROWS = 32, KEYS = 32, THREADS = 64;

// c[16 x 8] += a[16 x 16] * b[16 x 8]
__device__ void mma(float (&c)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

__device__ void load_two(unsigned (&b)[2], const half* from) {
    const unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(from));
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];" : "=r"(b[0]), "=r"(b[1]) : "r"(address));
}

__device__ void load_two_transposed(unsigned (&b)[2], const half* from) {
    const unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(from));
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];" : "=r"(b[0]), "=r"(b[1]) : "r"(address));
}

__device__ unsigned pack(float low, float high) {
    const half2 both = __floats2half2_rn(low, high);
    return *reinterpret_cast<const unsigned*>(&both);
}

template <int D, bool CAUSAL>
__global__ void attention(const half* q, const half* k, const half* v, half* out, int S, float scale) {
    constexpr int PITCH = D + 8;
    __shared__ __align__(16) half keys[KEYS * PITCH];
    __shared__ __align__(16) half values[KEYS * PITCH];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int group = lane / 4, pair = lane % 4 * 2;
    const int first = blockIdx.x * ROWS + warp * 16;
    const size_t base = size_t(blockIdx.y) * S * D;
    auto query = [&](int row, int column) {
        return row < S ? *reinterpret_cast<const unsigned*>(q + base + size_t(row) * D + column) : 0u;
    };
    unsigned x[D / 16][4];
    for (int d = 0; d < D / 16; ++d) {
        x[d][0] = query(first + group, d * 16 + pair);
        x[d][1] = query(first + group + 8, d * 16 + pair);
        x[d][2] = query(first + group, d * 16 + pair + 8);
        x[d][3] = query(first + group + 8, d * 16 + pair + 8);
    }
    float sum[D / 8][4] = {}, total[2] = {}, top[2];
    top[0] = top[1] = __int_as_float(0xff800000);
    const int end = CAUSAL ? min(S, int(blockIdx.x + 1) * ROWS) : S;
    for (int start = 0; start < end; start += KEYS) {
        for (int i = threadIdx.x; i < KEYS * D / 8; i += THREADS) {
            const int r = i / (D / 8), c = i % (D / 8) * 8;
            const size_t from = base + size_t(start + r) * D + c;
            const bool inside = start + r < S;
            *reinterpret_cast<uint4*>(keys + r * PITCH + c) = inside ? *reinterpret_cast<const uint4*>(k + from) : uint4{};
            *reinterpret_cast<uint4*>(values + r * PITCH + c) = inside ? *reinterpret_cast<const uint4*>(v + from) : uint4{};
        }
        __syncthreads();
        float score[KEYS / 8][4] = {};
        for (int n = 0; n < KEYS / 8; ++n)
            for (int d = 0; d < D / 16; ++d) {
                unsigned y[2];
                load_two(y, keys + (n * 8 + lane % 8) * PITCH + d * 16 + lane / 8 % 2 * 8);
                mma(score[n], x[d], y);
            }
        for (int n = 0; n < KEYS / 8; ++n)
            for (int e = 0; e < 4; ++e) {
                const int key = start + n * 8 + pair + e % 2, row = first + group + e / 2 * 8;
                const bool seen = key < S && (!CAUSAL || key <= row);
                score[n][e] = seen ? score[n][e] * scale : __int_as_float(0xff800000);
            }
        for (int h = 0; h < 2; ++h) {
            float high = top[h];
            for (int n = 0; n < KEYS / 8; ++n) high = fmaxf(high, fmaxf(score[n][2 * h], score[n][2 * h + 1]));
            for (int step = 1; step <= 2; step *= 2) high = fmaxf(high, __shfl_xor_sync(~0u, high, step));
            const float shrink = expf(top[h] - high);
            top[h] = high;
            total[h] *= shrink;
            for (int n = 0; n < KEYS / 8; ++n)
                for (int e = 2 * h; e < 2 * h + 2; ++e) {
                    score[n][e] = expf(score[n][e] - high);
                    total[h] += score[n][e];
                }
            for (int c = 0; c < D / 8; ++c) {
                sum[c][2 * h] *= shrink;
                sum[c][2 * h + 1] *= shrink;
            }
        }
        for (int j = 0; j < KEYS / 16; ++j) {
            const float(&left)[4] = score[2 * j], (&right)[4] = score[2 * j + 1];
            const unsigned weights[4] = {pack(left[0], left[1]), pack(left[2], left[3]), pack(right[0], right[1]),
                                         pack(right[2], right[3])};
            for (int c = 0; c < D / 8; ++c) {
                unsigned y[2];
                load_two_transposed(y, values + (j * 16 + lane % 16) * PITCH + c * 8);
                mma(sum[c], weights, y);
            }
        }
        __syncthreads();
    }
    for (int h = 0; h < 2; ++h) {
        for (int step = 1; step < 4; step *= 2) total[h] += __shfl_xor_sync(~0u, total[h], step);
        const int row = first + group + 8 * h;
        if (row >= S) continue;
        for (int c = 0; c < D / 8; ++c)
            *reinterpret_cast<half2*>(out + base + size_t(row) * D + c * 8 + pair) =
                __floats2half2_rn(sum[c][2 * h] / total[h], sum[c][2 * h + 1] / total[h]);
    }
}
