"""Kernels of the corpus on the emulator, against float64 results of numpy and torch."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from evoengine.emulator.device import Checks, Emulator
from tests.emulator.corpus import (
    feature_of,
    files_of,
    kernel_names,
    load_kernel,
    results,
    wrong,
    wrong_lines,
)
from tests.emulator.corpus_launch import launch

NAMES = kernel_names()


@pytest.fixture(scope="module")
def emulator() -> Iterator[Emulator]:
    made = Emulator(target="l4", threads=2)
    yield made
    made.close()  # each reserves 512 GiB of addresses


of_a_sample = pytest.mark.sampled("name", one_in=8, kind=feature_of, files=files_of)


@of_a_sample
@pytest.mark.parametrize("name", NAMES)
def test_kernel_computes_what_is_expected(emulator: Emulator, name: str) -> None:
    kernel, problems = load_kernel(name), []
    for case in kernel.cases:
        launched = launch(emulator, kernel, case)
        found = [wrong(case, index, array) for index, array in launched.results.items()]
        found.append(wrong_lines(case, launched.report.printed))
        problems += [f"{case.name}: {problem}" for problem in found if problem]
    assert not problems, "\n".join(problems)


@of_a_sample
@pytest.mark.parametrize("name", NAMES)
def test_checked_mode_finds_nothing_wrong_with_a_kernel_and_changes_no_result(
    emulator: Emulator, name: str
) -> None:
    kernel = load_kernel(name)
    case = kernel.cases[0]
    launched = launch(emulator, kernel, case, Checks())
    assert not [
        problem
        for index, array in launched.results.items()
        if (problem := wrong(case, index, array))
    ]
    # spinning on a flag in shared memory orders nothing by CUDA's memory model
    if case.ordered_by != "flag":
        assert [launched.report.describe(found) for found in launched.report.findings] == []


@pytest.mark.parametrize("name", NAMES)
def test_cases_are_complete(name: str) -> None:
    kernel = load_kernel(name)
    assert kernel.cases
    assert len({case.name for case in kernel.cases}) == len(kernel.cases)
    for case in kernel.cases:
        assert set(case.expected) == set(results(case)), case.name
        assert case.expected, case.name


def test_the_corpus_is_as_large_as_promised() -> None:
    assert len(NAMES) >= 60
