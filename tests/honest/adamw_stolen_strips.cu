/* evoengine
name: adamw_stolen_strips
precision: fp32
summary: warp 0 of a block begins with all of its strips of 128 elements; a warp without work steals the upper half of another's
tunables:
  WARPS: [8, 4]
  SPAN: [20, 64]                 # strips of a block
let:
  STRIPS: ceil_div(N, 128)
require:
  - WARPS <= WARP_SIZE
  - SPAN < 65536                 # two of them share a word
launches:
  - kernel: adamw_thief
    grid: ["ceil_div(STRIPS, SPAN)"]
    block: [WARPS * WARP_SIZE]
    args:
      - gradient
      - parameter
      - first
      - second
      - STRIPS
      - N
      - rate
      - decay
      - beta1
      - {value: 1 - beta1, dtype: float32}     # exact only before it is rounded
      - beta2
      - {value: 1 - beta2, dtype: float32}
      - eps
      - correction1
      - correction2
*/

/*
 * Work stealing inside of a block.
 *
 * A strip is what a warp updates at once: 32 lanes, one float4 of each tensor per lane. What a warp
 * has yet to do is a range of strips [lo, hi) of its block, kept in ONE 32-bit word of shared memory
 * so that a single compare-and-swap moves both ends:
 *
 *      31          16 15           0
 *     +--------------+--------------+
 *     |      hi      |      lo      |        lo == hi: nothing left
 *     +--------------+--------------+
 *
 * The owner takes from the lower end, thieves cut off the upper half. Only the owner fills an empty
 * word, and nobody swaps an empty one, so publishing loot is a plain exchange. A warp that finds all
 * words empty leaves; loot that is between two words at that time belongs to the thief who has it.
 */

typedef unsigned int u32;

#define EVERYONE      0xffffffffu
#define LANES         32
#define STRIP_FLOATS  (4 * LANES)
#define WORD(lo, hi)  ((u32)(hi) << 16 | (u32)(lo))
#define LO(w)         ((int)((w) & 0xffffu))
#define HI(w)         ((int)((w) >> 16))
#define PEEK(p)       atomicAdd((p), 0u)

typedef struct {
    float rate, keep;               /* keep: what the decay leaves of a parameter */
    float b1, a1, b2, a2;           /* a = 1 - b */
    float c1, c2, eps;
} hyper_t;


/* The first strip of the own range, or -1. */
static __device__ int pop(u32 *own)
{
    u32 w = PEEK(own);

    while (LO(w) < HI(w)) {
        u32 was = atomicCAS(own, w, WORD(LO(w) + 1, HI(w)));
        if (was == w)
            return LO(w);
        w = was;
    }
    return -1;
}


/* Cuts the upper half off the first range that has something, takes its first strip and makes the
 * rest the own range. -1 if there is nothing to steal. */
static __device__ int steal(u32 *range, int me)
{
    for (int hop = 1; hop < WARPS; ++hop) {
        u32 *victim = range + (me + hop) % WARPS;
        u32 w = PEEK(victim);

        while (LO(w) < HI(w)) {
            int cut = LO(w) + (HI(w) - LO(w)) / 2;
            u32 was = atomicCAS(victim, w, WORD(LO(w), cut));
            if (was == w) {
                atomicExch(range + me, WORD(cut + 1, HI(w)));
                return cut;
            }
            w = was;
        }
    }
    return -1;
}


static __device__ __forceinline__ void
step_one(const hyper_t *k, float g, float *p, float *m, float *v)
{
    float m1 = fmaf(k->b1, *m, k->a1 * g);
    float v1 = fmaf(k->b2, *v, k->a2 * g * g);
    float size = sqrtf(v1 / k->c2) + k->eps;

    *p = *p * k->keep - k->rate * (m1 / k->c1) / size;
    *m = m1;
    *v = v1;
}

#define STEP(c)  step_one(k, G.c, &P.c, &M.c, &V.c)

/* One strip, which may be the last one and end anywhere. */
static __device__ void
update_strip(const hyper_t *k, const float *g, float *p, float *m, float *v, long long at, int n)
{
    if (at + 4 <= n) {
        float4 G = *(const float4 *)(g + at);
        float4 P = *(float4 *)(p + at);
        float4 M = *(float4 *)(m + at);
        float4 V = *(float4 *)(v + at);

        STEP(x);
        STEP(y);
        STEP(z);
        STEP(w);

        *(float4 *)(p + at) = P;
        *(float4 *)(m + at) = M;
        *(float4 *)(v + at) = V;
        return;
    }
    for (; at < n; ++at)
        step_one(k, g[at], p + at, m + at, v + at);
}


extern "C" __global__ void __launch_bounds__(WARPS * LANES)
adamw_thief(const float *g, float *p, float *m, float *v, int strips, int n,
            float rate, float decay, float beta1, float alpha1, float beta2, float alpha2,
            float eps, float c1, float c2)
{
    __shared__ u32 range[WARPS];

    const int lane = threadIdx.x % LANES;
    const int me   = threadIdx.x / LANES;
    const int base = blockIdx.x * SPAN;

    hyper_t k;
    k.rate = rate;
    k.keep = 1.0f - rate * decay;
    k.b1 = beta1;
    k.a1 = alpha1;
    k.b2 = beta2;
    k.a2 = alpha2;
    k.c1 = c1;
    k.c2 = c2;
    k.eps = eps;

    if (threadIdx.x < WARPS)
        range[threadIdx.x] = threadIdx.x == 0 ? WORD(0, min(SPAN, strips - base)) : WORD(0, 0);
    __syncthreads();

    for (;;) {
        int strip = 0;

        if (lane == 0) {
            strip = pop(range + me);
            if (strip < 0)
                strip = steal(range, me);
        }
        strip = __shfl_sync(EVERYONE, strip, 0);
        if (strip < 0)
            break;

        update_strip(&k, g, p, m, v, (long long)(base + strip) * STRIP_FLOATS + 4 * lane, n);
    }
}
