/* evoengine
name: paged_warp_heads
precision: fp32
summary: a block has a sequence and a key head, a warp each of its query heads; lanes hold columns, and the numbers of 32 pages
launches:
  - kernel: decode<D>
    grid: [KV, B]
    block: [32, G]
    args: [q, k_pages, v_pages, table, lengths, slopes, out, PAGE, MAXP, scale]
*/
template <int V> struct alignas(4 * V) Columns { float value[V]; };

template <int D>
__global__ void decode(const float* __restrict__ q, const float* __restrict__ k_pages, const float* __restrict__ v_pages,
                       const int* __restrict__ table, const int* __restrict__ lengths, const float* __restrict__ slopes,
                       float* __restrict__ out, int page_size, int max_pages, float scale) {
    constexpr int OWN = D / 32, AT_ONCE = 4;
    using Own = Columns<OWN>;
    const int lane = threadIdx.x, kv = blockIdx.x, sequence = blockIdx.y, heads_kv = gridDim.x;
    const int head = kv * blockDim.y + threadIdx.y;
    const size_t row = size_t(sequence) * heads_kv * blockDim.y + head;
    const Own query = *reinterpret_cast<const Own*>(q + row * D + lane * OWN);
    const float slope = slopes[head];
    const int length = lengths[sequence], pages = (length + page_size - 1) / page_size;
    const int* pages_of = table + size_t(sequence) * max_pages;

    float sum[OWN] = {}, total = 0.0f, top = __int_as_float(0xff800000);
    int numbers = 0;
    for (int i = 0; i < pages; ++i) {
        if (i % 32 == 0) numbers = i + lane < pages ? pages_of[i + lane] : 0;
        const int page = __shfl_sync(~0u, numbers, i % 32);
        const int used = min(page_size, length - i * page_size);
        for (int slot = 0; slot < used; slot += AT_ONCE) {
            float score[AT_ONCE];
            Own value[AT_ONCE];
            #pragma unroll
            for (int j = 0; j < AT_ONCE; ++j) {
                const size_t from = ((size_t(page) * page_size + min(slot + j, used - 1)) * heads_kv + kv) * D + lane * OWN;
                const Own key = *reinterpret_cast<const Own*>(k_pages + from);
                value[j] = *reinterpret_cast<const Own*>(v_pages + from);
                float dot = 0.0f;
                for (int c = 0; c < OWN; ++c) dot = fmaf(query.value[c], key.value[c], dot);
                for (int step = 16; step > 0; step /= 2) dot += __shfl_xor_sync(~0u, dot, step);
                const int place = i * page_size + slot + j;
                score[j] = slot + j < used ? dot * scale + slope * float(place - (length - 1)) : __int_as_float(0xff800000);
            }
            float high = top;
            for (int j = 0; j < AT_ONCE; ++j) high = fmaxf(high, score[j]);
            const float shrink = expf(top - high);
            top = high;
            total *= shrink;
            for (int c = 0; c < OWN; ++c) sum[c] *= shrink;
            for (int j = 0; j < AT_ONCE; ++j) {
                const float weight = expf(score[j] - high);
                total += weight;
                for (int c = 0; c < OWN; ++c) sum[c] = fmaf(weight, value[j].value[c], sum[c]);
            }
        }
    }
    Own result;
    for (int c = 0; c < OWN; ++c) result.value[c] = sum[c] / total;
    *reinterpret_cast<Own*>(out + row * D + lane * OWN) = result;
}
