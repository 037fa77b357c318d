/* evoengine
name: keystone_scatter
precision: fp16
summary: key-stationary; a block keeps 64 keys and lets all queries pass. One launch raises the rows' maxima by atomicMax, one adds weights and weighted values to sums in global memory, one divides
let:
  KTILES: ceil_div(S, 64)
  TILE: 2 * 64 * (D + 8)
scratch:
  peak: {dtype: int32, shape: [B * H, S], init: 0}
  mass: {dtype: float32, shape: [B * H, S], init: 0}
  acc: {dtype: float32, shape: [B * H, S, D], init: 0}
launches:
  - kernel: "pass_by<D, causal, false>"
    grid: [KTILES, B * H]
    block: [128]
    shared: TILE
    args: [q, k, v, peak, mass, acc, S, scale * 1.4426950408889634]
  - kernel: "pass_by<D, causal, true>"
    grid: [KTILES, B * H]
    block: [128]
    shared: 2 * TILE
    args: [q, k, v, peak, mass, acc, S, scale * 1.4426950408889634]
  - kernel: settle<D>
    grid: ["ceil_div(B * H * S, 8)"]
    block: [256]
    args: [mass, acc, out, B * H * S]
*/
#include <cuda_fp16.h>

typedef unsigned u32;

#define NKEYS 64
#define NWARP 4
#define NINF  __int_as_float(0xff800000)

/* floats in the order of unsigned integers; 0 is below all of them */
static __device__ u32 rank_of(float x)
{
	u32 u = __float_as_uint(x);
	return (u >> 31) ? ~u : u | 0x80000000u;
}

static __device__ float float_of(u32 r)
{
	return __uint_as_float((r >> 31) ? r & 0x7fffffffu : ~r);
}

static __device__ void ldsm(u32 *r, u32 addr)
{
	asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
		: "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(addr) : "memory");
}

static __device__ void ldsm_t(u32 *r, u32 addr)
{
	asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
		: "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(addr) : "memory");
}

static __device__ void hmma(float *c, const u32 *a, u32 b0, u32 b1)
{
	asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
		: "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
		: "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

static __device__ u32 pack2(float lo, float hi)
{
	half2 h = __floats2half2_rn(lo, hi);
	return *(u32 *)&h;
}

/* 64 rows of a head from row k0 on; rows past the end are zero */
template <int D>
static __device__ void keep(half *tile, const half *src, int k0, int S)
{
	for (int i = threadIdx.x; i < NKEYS * (D / 8); i += NWARP * 32) {
		int r = i / (D / 8), c = i % (D / 8) * 8;
		uint4 x = make_uint4(0, 0, 0, 0);
		if (k0 + r < S)
			x = *(const uint4 *)(src + (size_t)(k0 + r) * D + c);
		*(uint4 *)(tile + r * (D + 8) + c) = x;
	}
}

template <int D, bool CAUSAL, bool ADD>
__global__ void __launch_bounds__(NWARP * 32)
pass_by(const half *q, const half *k, const half *v, int *peak, float *mass, float *acc, int S, float scale)
{
	extern __shared__ __align__(16) half sm[];
	const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
	const int g = lane >> 2, t = lane & 3;
	const int k0 = blockIdx.x * NKEYS;
	const size_t row_base = (size_t)blockIdx.y * S;
	const u32 ks = (u32)__cvta_generic_to_shared(sm), vs = ks + NKEYS * (D + 8) * 2;

	keep<D>(sm, k + row_base * D, k0, S);
	if (ADD)
		keep<D>(sm + NKEYS * (D + 8), v + row_base * D, k0, S);
	__syncthreads();

	/* warps take 16 queries in turn; with the mask, those before the first key see nothing here */
	for (int q0 = (CAUSAL ? k0 : 0) + warp * 16; q0 < S; q0 += NWARP * 16) {
		const int row[2] = { q0 + g, q0 + g + 8 };
		float s[NKEYS / 8][4] = {};

		for (int d = 0; d < D; d += 16) {
			u32 a[4];
			for (int i = 0; i < 4; i++) {
				const int r = row[i & 1];
				a[i] = r < S ? *(const u32 *)(q + (row_base + r) * D + d + 2 * t + (i >> 1) * 8) : 0;
			}
#pragma unroll
			for (int n = 0; n < NKEYS / 16; n++) {
				u32 b[4];
				ldsm(b, ks + ((n * 16 + (lane & 7) + (lane >> 4) * 8) * (D + 8) + d + (lane >> 3 & 1) * 8) * 2);
				hmma(s[2 * n], a, b[0], b[1]);
				hmma(s[2 * n + 1], a, b[2], b[3]);
			}
		}
#pragma unroll
		for (int n = 0; n < NKEYS / 8; n++)
			for (int i = 0; i < 4; i++) {
				const int key = k0 + n * 8 + 2 * t + (i & 1);
				const bool seen = key < S && (!CAUSAL || key <= row[i >> 1]);
				s[n][i] = seen ? s[n][i] * scale : NINF;
			}

		if (!ADD) {
			for (int h = 0; h < 2; h++) {
				float top = NINF;
				for (int n = 0; n < NKEYS / 8; n++)
					top = fmaxf(top, fmaxf(s[n][2 * h], s[n][2 * h + 1]));
				top = fmaxf(top, __shfl_xor_sync(~0u, top, 1));
				top = fmaxf(top, __shfl_xor_sync(~0u, top, 2));
				if (t == 0 && row[h] < S)
					atomicMax((u32 *)peak + row_base + row[h], rank_of(top));
			}
			continue;
		}

		for (int h = 0; h < 2; h++) {
			const float top = row[h] < S ? float_of((u32)peak[row_base + row[h]]) : 0.0f;
			float sum = 0.0f;
#pragma unroll
			for (int n = 0; n < NKEYS / 8; n++)
				for (int i = 2 * h; i < 2 * h + 2; i++)
					sum += s[n][i] = exp2f(s[n][i] - top);
			sum += __shfl_xor_sync(~0u, sum, 1);
			sum += __shfl_xor_sync(~0u, sum, 2);
			if (t == 0 && row[h] < S)
				atomicAdd(mass + row_base + row[h], sum);
		}
		/* 16 columns at a time: there is nothing to carry from one group of queries to the next */
		for (int c = 0; c < D; c += 16) {
			float o[2][4] = {};
#pragma unroll
			for (int n = 0; n < NKEYS / 16; n++) {
				const u32 p[4] = {
					pack2(s[2 * n][0], s[2 * n][1]), pack2(s[2 * n][2], s[2 * n][3]),
					pack2(s[2 * n + 1][0], s[2 * n + 1][1]), pack2(s[2 * n + 1][2], s[2 * n + 1][3])
				};
				u32 b[4];
				ldsm_t(b, vs + ((n * 16 + (lane & 15)) * (D + 8) + c + (lane >> 4) * 8) * 2);
				hmma(o[0], p, b[0], b[1]);
				hmma(o[1], p, b[2], b[3]);
			}
			for (int i = 0; i < 8; i++) {
				const int r = row[(i & 3) >> 1];
				if (r < S)
					atomicAdd(acc + (row_base + r) * D + c + (i >> 2) * 8 + 2 * t + (i & 1), o[i >> 2][i & 3]);
			}
		}
	}
}

/* a warp a row */
template <int D>
__global__ void settle(const float *mass, const float *acc, half *out, int rows)
{
	const int row = blockIdx.x * 8 + threadIdx.x / 32, lane = threadIdx.x % 32;
	if (row >= rows)
		return;
	const float inv = 1.0f / mass[row];
	for (int c = lane * 2; c < D; c += 64) {
		const float2 x = *(const float2 *)(acc + (size_t)row * D + c);
		*(half2 *)(out + (size_t)row * D + c) = __floats2half2_rn(x.x * inv, x.y * inv);
	}
}
