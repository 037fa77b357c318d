"""A small task, a product of softmax weights, and kernels for it with one mistake each."""

from __future__ import annotations

from pathlib import Path

TASK = """
name: weighted
reference: weighted.py:weighted
dims: {M: int, N: int, K: int}
inputs:
  x: {shape: [M, K], dtype: float32}
  w: {shape: [K, N], dtype: float32}
  scale: {value: 1/sqrt(K), dtype: float32}
outputs: {out: {shape: [M, N], dtype: float32}}
cases: {plain: {M: 64, N: 64, K: 32}}
hidden_cases: {odd: {M: 50, N: 40, K: 24}}
tiers: {fp32: {atol: 1e-5, rtol: 1e-5, rel_rmse: 1e-5}}
objective: {cases: [plain]}
baselines: {torch: weighted.py:weighted}
limits: {emulator_launch_s: 60, emulator_evaluate_s: 100}
budget: {trials: 1}
"""
REFERENCE = "def weighted(x, w, scale):\n    return (x * scale).softmax(-1) @ w\n"
KERNEL = """/* evoengine
name: weighted
precision: fp32
launches:
  - kernel: weighted
    grid: ["ceil_div(M*N, 128)"]
    block: [128]
    args: [x, w, out, M, N, K, scale]
*/
__device__ unsigned int count;
__global__ void weighted(const float* x, const float* w, float* out, int M, int N, int K,
                         float scale) {
    int at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at >= M * N) return;
    int row = at / N, column = at % N;
    float most = -1e30f, sum = 0.0f, total = 0.0f;
    for (int k = 0; k < K; ++k) most = fmaxf(most, x[row * K + k] * SCALE);
    for (int k = 0; k < K; ++k) {
        float p = expf(x[row * K + k] * SCALE - most);
        sum += p;
        total += p * w[PLACE];
    }
    STORE;
}
"""


def kernel(
    scale: str = "scale", place: str = "k * N + column", store: str = "out[at] = total / sum"
) -> str:
    """The kernel with some expressions replaced."""
    return KERNEL.replace("SCALE", scale).replace("PLACE", place).replace("STORE", store)


def write_task(folder: Path) -> Path:
    (folder / "weighted.py").write_text(REFERENCE)
    path = folder / "weighted.yaml"
    path.write_text(TASK)
    return path


# name -> source, kind of the first diagnosis, words of its sentence
PLANTED = {
    "scaled twice": (kernel(scale="scale * scale"), "scalar", "scale applied twice"),
    "transposed": (kernel(place="column * K + k"), "input", "w transposed (K and N swapped)"),
    "not normalised": (
        kernel(store="out[at] = total"),
        "step",
        "without dividing by the sum in `(x * scale).softmax(-1)` in line 2 of weighted.py",
    ),
    "rows left out": (
        kernel(store="if (row % 8 != 7) out[at] = total / sum"),
        "never written",
        "at the last row (7) of every 8 along M",
    ),
    "counts launches": (
        kernel(store="out[at] = total / sum + (atomicAdd(&count, 1) >= M * N ? 1.0f : 0.0f)"),
        "state",
        "The first launch is right",
    ),
}
HIDDEN_TAIL = kernel(store="if (M != 50 || at < M * N / 128 * 128) out[at] = total / sum")
# The first launch writes the sums of all rows, and the maxima of seven of every eight.
UNWRITTEN_SCRATCH = (
    kernel(store="out[at] = total / sums[row]")
    .replace(
        "launches:",
        """scratch:
  tops: {dtype: float32, shape: [M]}
  sums: {dtype: float32, shape: [M]}
launches:
  - kernel: statistics
    grid: [1]
    block: [128]
    args: [x, tops, sums, M, K, scale]""",
    )
    .replace("args: [x, w, out,", "args: [x, w, tops, sums, out,")
    .replace(
        "const float* w, float* out",
        "const float* w, const float* tops, const float* sums, float* out",
    )
    .replace("float most = -1e30f,", "float most = tops[row],")
    .replace("    for (int k = 0; k < K; ++k) most = fmaxf(most, x[row * K + k] * scale);\n", "", 1)
    + """__global__ void statistics(const float* x, float* tops, float* sums, int M, int K, float scale) {
    int row = threadIdx.x;
    if (row >= M) return;
    float most = -1e30f, sum = 0.0f;
    for (int k = 0; k < K; ++k) most = fmaxf(most, x[row * K + k] * scale);
    for (int k = 0; k < K; ++k) sum += expf(x[row * K + k] * scale - most);
    if (row % 8 != 7) tops[row] = most;
    sums[row] = sum;
}
"""
)
