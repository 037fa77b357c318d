from __future__ import annotations

from pathlib import Path

import pytest

from evoengine.errors import UsageError
from evoengine.search.tier_options import tiers_from
from tests.scale_task import load_scale_task


def test_tiers_without_a_share_have_what_the_others_leave(tmp_path: Path) -> None:
    task = load_scale_task(tmp_path)
    assert tiers_from([], task) == {}
    assert tiers_from(["fp16"], task) == {"fp16": 1.0}
    assert tiers_from(["fp32", "fp16"], task) == {"fp32": 0.5, "fp16": 0.5}
    assert tiers_from(["fp32", "fp16=0.25"], task) == {"fp32": 0.75, "fp16": 0.25}
    assert tiers_from(["fp32=0.6", "fp16=0.4"], task) == {"fp32": 0.6, "fp16": 0.4}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["fp8"], "--tier fp8: no tier 'fp8'"),
        (["fp16=0"], "--tier fp16=0: expected NAME or NAME=SHARE with a share above 0"),
        (["fp16=nan"], "--tier fp16=nan: expected NAME or NAME=SHARE"),
        (["fp16=much"], "--tier fp16=much: expected NAME or NAME=SHARE"),
        (["fp16", "fp16=0.5"], "--tier fp16: given 2 times"),
        (["fp16=0.5"], "the shares add up to 0.5, expected 1"),
        (["fp16=1", "fp32"], "the shares add up to 1 and leave none for the rest"),
    ],
)
def test_a_share_that_makes_no_sense_is_refused(
    tmp_path: Path, options: list[str], message: str
) -> None:
    with pytest.raises(UsageError, match=message.replace("(", r"\(")):
        tiers_from(options, load_scale_task(tmp_path))
