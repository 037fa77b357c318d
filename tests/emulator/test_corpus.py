"""Every kernel of the corpus on the emulator, against what numpy and torch say in float64."""

from __future__ import annotations

import importlib.util

import pytest

from tests.emulator.corpus import load_corpus, load_kernel, results, wrong, wrong_lines

NAMES = [kernel.name for kernel in load_corpus()]
with_emulator = pytest.mark.skipif(
    importlib.util.find_spec("evoengine.emulator.device") is None, reason="evoengine.emulator.device is not there"
)


@with_emulator
@pytest.mark.parametrize("name", NAMES)
def test_kernel_computes_what_is_expected(name: str) -> None:
    from evoengine.emulator.device import Emulator
    from tests.emulator.launching import launch

    kernel, problems = load_kernel(name), []
    emulator = Emulator(target="l4", threads=2)
    for case in kernel.cases:
        launched = launch(emulator, kernel, case)
        found = [wrong(case, index, array) for index, array in launched.results.items()]
        found.append(wrong_lines(case, launched.report.printed))
        problems += [f"{case.name}: {problem}" for problem in found if problem]
    assert not problems, "\n".join(problems)


@pytest.mark.parametrize("name", NAMES)
def test_cases_are_whole(name: str) -> None:
    kernel = load_kernel(name)
    assert kernel.cases
    assert len({case.name for case in kernel.cases}) == len(kernel.cases)
    for case in kernel.cases:
        assert set(case.expected) == set(results(case)), case.name
        assert case.expected, case.name


def test_the_corpus_is_as_large_as_promised() -> None:
    assert len(NAMES) >= 60
