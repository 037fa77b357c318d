"""The same wrong kernels on a real GPU: the same diagnoses."""

from __future__ import annotations

from pathlib import Path

import pytest

from evoengine.evaluate.cuda_driver import cuda_devices
from evoengine.records import Status
from tests.evaluate.test_verdicts import judge
from tests.evaluate.worker.forensics.softmax_task import HIDDEN_TAIL, PLANTED, kernel, write_task

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.timeout(600),
    pytest.mark.skipif(not cuda_devices().names, reason="needs a CUDA device"),
]
RACE = kernel(
    store="""__shared__ float shared[128];
    shared[threadIdx.x] = total / sum;
    out[at] = shared[(threadIdx.x + 64) % 128] + (clock64() & 1 ? 1.0f : 0.0f)"""
)


def test_wrong_kernels_come_back_with_their_diagnoses(tmp_path: Path) -> None:
    path = write_task(tmp_path)
    # a counter is set back before every replay: several calls are launched in each
    sources = [planted[0] for planted in PLANTED.values()]
    verdicts = judge(path, [*sources, HIDDEN_TAIL, RACE, kernel()])
    for verdict, (name, planted) in zip(verdicts, PLANTED.items(), strict=False):
        assert verdict.status is Status.wrong_result, name
        assert verdict.forensics is not None, name
        assert verdict.forensics.diagnoses, (name, verdict.forensics)
        first = verdict.forensics.diagnoses[0]
        assert first.kind.value == planted[1], (name, verdict.forensics)
        assert planted[2] in first.sentence
    hidden, racy, right = verdicts[-3:]
    assert hidden.forensics is not None
    assert [item.sentence for item in hidden.forensics.diagnoses] == ["Elements are never written."]
    assert racy.forensics is not None
    assert racy.forensics.diagnoses[0].kind.value == "race"
    assert right.status is Status.correct and right.forensics is None
