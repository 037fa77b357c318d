"""A kernel with a bit of everything that changes are made of, and helpers to look changes up."""

from __future__ import annotations

from evoengine.candidate import kernel_file
from evoengine.candidate.kernel_file import Candidate
from evoengine.evaluate.repair.change_order import kernel_code, ordered_changes
from evoengine.evaluate.repair.kernel_code import KernelCode
from evoengine.evaluate.repair.source_change import SourceChange

SOURCE = """/* evoengine
name: row_sums
precision: fp32
tunables:
  THREADS: [128, 256]
launches:
  - kernel: row_sums<4>
    grid: ["ceil_div(N, 4)", B]
    block: [THREADS]
    args: [x, weight, out, N, C, scale]
*/
__device__ float warp_sum(float value) {
    for (int step = 16; step > 0; step /= 2) value += __shfl_xor_sync(~0u, value, step);
    return value;
}

template <int ROWS>
__global__ void row_sums(const float* x, const float* weight, float* out, int N, int C, float scale) {
    __shared__ float parts[ROWS][32];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int first = blockIdx.x * ROWS;
    float top = -INFINITY, sum = 0.0f;
    for (int c = lane; c < C; c += 32) {
        const float value = x[size_t(first + warp) * C + c];
        top = fmaxf(top, value);
        sum += value * weight[c] * scale;
    }
    sum = warp_sum(sum);
    if (lane == 0) parts[warp][0] = sum;
    __syncthreads();
    if (threadIdx.x < ROWS && first + threadIdx.x < N) out[first + threadIdx.x] = parts[threadIdx.x][0];
}
"""


def candidate(*replaced: tuple[str, str]) -> Candidate:
    """The kernel with texts replaced, each of which it has once."""
    source = SOURCE
    for old, new in replaced:
        assert source.count(old) == 1, old
        source = source.replace(old, new)
    return kernel_file.parse(source)


def code_of(found: Candidate) -> KernelCode:
    """Its device code."""
    return kernel_code(found)


def repairing(wrong: Candidate, right: Candidate) -> list[SourceChange]:
    """The changes that make one kernel of the other, but for layout."""
    wanted = squeezed(right.source)
    changes = (change for change, _ in ordered_changes(wrong))
    return [item for item in changes if squeezed(item.applied(wrong.source)) == wanted]


def squeezed(source: str) -> str:
    """The source without layout; a kernel without comments is expected."""
    return source.translate(str.maketrans("", "", " \n"))
