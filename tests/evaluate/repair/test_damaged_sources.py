"""Sources that a model or an editor cut off have changes, or none, and break nothing."""

from __future__ import annotations

import random

import pytest

from benchmarks.corpora import ROOT
from evoengine.candidate import kernel_file
from evoengine.errors import CandidateError
from evoengine.evaluate.repair.change_order import header_end, ordered_changes
from tests.evaluate.repair.small_kernel import candidate

PUT = ("", "(", ")", "[", "]", "{", "}", ";", "=", "struct ", "for (", "if )", "/", '"')
KERNELS = (
    "seeds/layernorm.cu",
    "tests/structures/argmax_block_rows.cu",
    "tests/structures/depthwise_thread_per_point.cu",
)


@pytest.mark.parametrize("path", KERNELS)
@pytest.mark.parametrize("seed", range(12))
def test_a_damaged_source_breaks_nothing(path: str, seed: int) -> None:
    source = (ROOT / path).read_text(encoding="utf-8")
    begin = header_end(kernel_file.parse(source))
    chance = random.Random(seed)  # noqa: S311 - must repeat
    body = source[begin:]
    for _ in range(1 + seed % 5):
        place = chance.randrange(len(body))
        body = body[:place] + chance.choice(PUT) + body[place + 1 :]
    if seed % 3 == 0:
        body = body[: chance.randrange(len(body))]
    try:
        damaged = kernel_file.parse(source[:begin] + body)
    except CandidateError:
        return
    for change, likeliness in ordered_changes(damaged):
        assert likeliness > 0 and change.end <= len(damaged.source)


@pytest.mark.timeout(60)
@pytest.mark.parametrize("again", ["if (lane) ", "if (lane) ; else ", "for (;;) ", "if ) ("])
def test_a_thousand_conditions_in_a_row_break_nothing(again: str) -> None:
    many = candidate(("    if (lane == 0) parts", f"    {again * 1100} parts"))
    assert ordered_changes(many)
