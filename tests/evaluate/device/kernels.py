"""Kernels for the task `scale` (out = 2 x), one for each way to behave."""

COUNTS = "static __device__ unsigned launched; if (i == 0) atomicAdd(&launched, 1u);"

BODIES = {
    "correct": "out[i] = 2.0f * x[i];",
    "adds": "out[i] = x[i] + x[i];",
    "wrong": "out[i] = 3.0f * x[i];",
    "endless": "out[i] = 2.0f * x[i]; while (*(volatile float*)x == *(volatile float*)x) {}",
    "illegal access": "out[i] = *(float*)(0x10 + (unsigned long long)i * 4);",
    "trap": 'out[i] = 2.0f * x[i]; asm volatile("trap;");',
    "assert": 'out[i] = 2.0f * x[i]; __assert_fail("never", "kernel.cu", 1, "scale");',
    "prints": (
        'for (int k = 0; k < 4; ++k) printf("thread %d says %d\\n", i, k); out[i] = 2.0f * x[i];'
    ),
    "floods": (
        'for (int k = 0; k < 4096; ++k) printf("thread %d says %d\\n", i, k); out[i] = 2.0f * x[i];'
    ),
    "misaligned": "out[i] = *(const double*)((const char*)x + 4 * i + 1);",
    "leaves a band out": "if (i % 64 < 56) out[i] = 2.0f * x[i];",
    "overwrites its input": "out[i] = 2.0f * x[i]; ((float*)x)[i] = 0.0f;",
    "writes beyond": "out[i] = 2.0f * x[i]; if (i == 0) out[n + 8] = 1.0f;",
    "idles when it was launched often": COUNTS + "if (launched > 40) return; out[i] = 2.0f * x[i];",
    "overwrites its input when it was launched often": (
        COUNTS + "out[i] = 2.0f * x[i]; if (launched > 40) ((float*)x)[i] = 0.0f;"
    ),
    "keeps its answers": (
        "static __device__ float kept[1 << 20]; kept[i] = 2.0f * x[i]; __threadfence(); out[i] ="
        " kept[i];"
    ),
    "leaves a NaN": "out[i] = i == 17 ? __int_as_float(0x7fffffff) : 2.0f * x[i];",
}

SOURCE = """/* evoengine
name: scale
precision: fp32
launches:
  - {kernel: scale, grid: ["ceil_div(N, 128)"], block: [128], shared: SHARED, args: [x, out, N]}
*/
extern "C" __device__ void __assert_fail(const char*, const char*, unsigned, const char*);
extern "C" __global__ void scale(const float* x, float* out, int n) {
  int i = blockIdx.x * 128 + threadIdx.x;
  if (i >= n) return;
  BODY
}
"""


def source(behaviour: str, shared_bytes: int = 0) -> str:
    return SOURCE.replace("BODY", BODIES[behaviour]).replace("SHARED", str(shared_bytes))
