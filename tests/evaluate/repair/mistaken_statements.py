"""A kernel around statements, and helpers to look up the changes that mend a mistake in them."""

from __future__ import annotations

from benchmarks.written_alike import form
from evoengine.candidate import kernel_file
from evoengine.candidate.kernel_file import Candidate
from evoengine.evaluate.repair.change_order import header_end, ordered_changes
from evoengine.evaluate.repair.found_repairs import FoundRepairs
from evoengine.evaluate.repair.repair_finding import finding
from evoengine.evaluate.repair.source_change import SourceChange

KERNEL = """/* evoengine
name: statements
precision: fp32
launches:
  - kernel: statements
    grid: [N]
    block: [128]
    args: [x, out, counter, N, C]
*/
struct Pair { float sum, top; };
__device__ void take(float& top, int& place, float other, int of_other) {
    if (other > top) top = other, place = of_other;
}
__device__ float warp_sum(float value) {
    for (int step = 16; step > 0; step /= 2) value += __shfl_xor_sync(~0u, value, step);
    return value;
}
__global__ void statements(const float* x, float* out, int* counter, int N, int C) {
    __shared__ float tile[128];
    __shared__ int count, bins[16];
    const int t = threadIdx.x, lane = t % 32, warp = t / 32;
    BODY
}
"""


def kernel(body: str) -> Candidate:
    return kernel_file.parse(KERNEL.replace("BODY", body))


def repairing(wrong: Candidate, right: Candidate) -> list[SourceChange]:
    """The changes that make one kernel of the other, but for layout and brackets."""
    wanted = form(right.source[header_end(right) :])
    changes = (change for change, _ in ordered_changes(wrong))
    return [it for it in changes if form(it.applied(wrong.source)[header_end(wrong) :]) == wanted]


def kinds(body: str) -> set[str]:
    """The kinds of all changes of a kernel with this body."""
    return {change.kind for change, _ in ordered_changes(kernel(body))}


def sentence(wrong: Candidate, change: SourceChange) -> str:
    """What is said of a change that makes a kernel right."""
    found = finding(wrong, FoundRepairs(changes=[change]))
    assert found is not None
    return found.sentence


def assert_mended(kind: str, wrong: str, right: str, said: str) -> None:
    """That a kernel's changes have the right one, of this kind and with these words."""
    changes = [it for it in repairing(kernel(wrong), kernel(right)) if it.kind == kind]
    assert changes
    assert said in sentence(kernel(wrong), changes[0])
