"""Whatever happens in forensics, the verdict stays as it is."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest

from evoengine.evaluate.worker.candidate_failures import Crashed
from evoengine.evaluate.worker.forensics import examiner as examiner_module
from evoengine.evaluate.worker.forensics.examiner import Examiner
from evoengine.evaluate.worker.forensics.recomputed_reference import Processor
from evoengine.evaluate.worker.forensics.wrong_call import WrongCall
from evoengine.protocols import CompiledCase, Job
from evoengine.records import Forensics
from tests.evaluate.worker.forensics.mutated import functions, plan_of, small, wrong_call

pytestmark = pytest.mark.filterwarnings("ignore:.*torch.jit.*:DeprecationWarning")


class Scripted:
    """A backend that has one wrong call, and whose further launches do what they are told to."""

    errors = (MemoryError,)

    def __init__(self, call: WrongCall | None, again: Any = ()) -> None:
        self.call, self.again = call, again

    def wrong_call(self) -> WrongCall | None:
        return self.call

    def relaunches(self, *_: Any) -> Any:
        if isinstance(self.again, Exception):
            raise self.again
        return self.again


def examined(call: WrongCall | None, again: Any = ()) -> tuple[Forensics, bool]:
    check = wrong_call("matmul_fp16", "flat", lambda t, _: -t["a"] @ t["b"])[1]
    compiled = CompiledCase(plan=plan_of("flat"), code_path="", functions={})
    backend: Any = Scripted(call, again)
    examiner = Examiner(small("matmul_fp16"), functions("matmul_fp16"), backend)
    found = examiner.examine(compiled, Job(cases=(), tier="fp16"), check, (), lambda *_: None)
    return found, examiner.healthy


def negated() -> WrongCall:
    return wrong_call("matmul_fp16", "flat", lambda t, _: -t["a"] @ t["b"])[0]


def test_a_wrong_call_is_examined() -> None:
    found, healthy = examined(negated())
    assert found.diagnoses[0].kind.value == "sign"
    assert (found.problem, healthy) == ("", True)


def test_a_device_that_breaks_meanwhile_costs_the_diagnosis_and_is_told() -> None:
    call, check = wrong_call("matmul_fp16", "flat", lambda t, _: -t["a"] @ t["b"])

    def answer() -> None:
        raise RuntimeError("CUDA error: device-side assert triggered")

    compiled = CompiledCase(plan=plan_of("flat"), code_path="", functions={})
    backend: Any = Scripted(call)
    processor = Processor(answer=answer)
    examiner = Examiner(
        small("matmul_fp16"), functions("matmul_fp16"), backend, processor=processor
    )
    found = examiner.examine(compiled, Job(cases=(), tier="fp16"), check, (), lambda *_: None)
    assert not examiner.has_device
    assert found.problem == "forensics broke the device: CUDA error: device-side assert triggered"


@pytest.mark.parametrize(("most", "is_held"), [(examiner_module.MOST_ON_CPU, False), (100, True)])
def test_small_references_are_computed_again_without_the_device(
    monkeypatch: pytest.MonkeyPatch, most: int, is_held: bool
) -> None:
    turns: list[int] = []

    @contextmanager
    def turn() -> Iterator[None]:
        turns.append(1)
        yield

    monkeypatch.setattr(examiner_module, "MOST_ON_CPU", most)
    call, check = wrong_call("matmul_fp16", "flat", lambda t, _: t["a"][:, 8:] @ t["b"][8:])
    compiled = CompiledCase(plan=plan_of("flat"), code_path="", functions={})
    backend: Any = Scripted(call)
    task, known = small("matmul_fp16"), functions("matmul_fp16")
    examiner = Examiner(task, known, backend, processor=Processor(turn=turn))
    found = examiner.examine(compiled, Job(cases=(), tier="fp16"), check, (), lambda *_: None)
    assert found.diagnoses and bool(turns) is is_held


def test_a_further_launch_that_crashes_costs_only_what_it_would_have_shown() -> None:
    found, healthy = examined(negated(), Crashed("illegal access"))
    assert found.diagnoses[0].kind.value == "sign"
    assert found.problem == "launched once more: crash: illegal access"
    assert not healthy  # the process is replaced


def test_a_fault_of_the_analysis_is_one_line() -> None:
    broken = replace(negated(), gates={})
    found, healthy = examined(broken)
    assert found.diagnoses == ()
    assert found.problem == "forensics failed: KeyError: 'out'"
    assert healthy


def test_without_outputs_there_is_nothing_to_examine() -> None:
    found, _ = examined(None)
    assert found.problem == "its outputs were not kept"
