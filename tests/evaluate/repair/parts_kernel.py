"""A kernel whose statements are given, and the changes that make it another one."""

from __future__ import annotations

from benchmarks.written_alike import form
from evoengine.candidate import kernel_file
from evoengine.candidate.kernel_file import Candidate
from evoengine.evaluate.repair.change_order import ordered_changes
from evoengine.evaluate.repair.source_change import SourceChange

KERNEL = """/* evoengine
name: parts
precision: fp32
launches:
  - kernel: parts
    grid: [N, 2, B * C]
    block: [32]
    args: [x, table, out, N, C]
*/
__global__ void parts(const float* x, const int* table, float* out, int N, int C) {
    __shared__ float tile[64 * 8], grid[64][72];
    __shared__ float2 parts[8];
    const int lane = threadIdx.x % 32, row = blockIdx.x, base = row * C;
    float mean = 0.0f, kept[4];
    int tile_k = 0, tile_v = 0, size_k = N, size_v = C;
    BODY
}
"""


def kernel(body: str) -> Candidate:
    """The kernel with these statements."""
    return kernel_file.parse(KERNEL.replace("BODY", body))


def repairing(wrong: Candidate, right: Candidate, kind: str = "") -> list[SourceChange]:
    """The changes, or those of a kind, that make one kernel of the other, but for how it is
    written.
    """
    wanted = _form(right.source)
    changes = (change for change, _ in ordered_changes(wrong) if kind in ("", change.kind))
    return [change for change in changes if _form(change.applied(wrong.source)) == wanted]


def _form(source: str) -> str:
    header, end, code = source.partition("*/")
    return header + end + form(code)
