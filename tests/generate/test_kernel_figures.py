"""What a prompt says of the kernels of a file with a specialisation for each case, and how short."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.prompt_requests import late_request
from evoengine.candidate import binding, kernel_file
from evoengine.candidate.arch import limits_of
from evoengine.generate import prompt_context
from evoengine.generate.prompt_context import MAX_SUMMARY, PromptContext
from evoengine.protocols import Evaluated, Request
from evoengine.records import Status

SPECIALISED = Path(__file__).parents[1] / "honest" / "layernorm_register_rows.cu"
ROWS, BROAD, FEW = (
    "layernorm<1, 256, 4, 1, 8, 1, 1, 4>",
    "layernorm<1, 512, 2, 2, 4, 2, 1, 4>",
    "layernorm<1, 512, 2, 4, 2, 2, 1, 4>",
)


@pytest.fixture(scope="module")
def late() -> Request:
    return late_request("layernorm")


@pytest.fixture(scope="module")
def figures(late: Request) -> PromptContext:
    """Of the kernel with its specialisations for all cases, hidden ones among them."""
    return prompt_context.prompt_context(specialised(late), late)


def specialised(late: Request) -> Evaluated:
    candidate = kernel_file.read(SPECIALISED)
    parent = late.elites[0][1]
    one = parent.verdict.resources[0]
    names = {
        launch.kernel: None
        for case in late.task.all_cases
        for launch in binding.bind(candidate, late.task, case, limits_of(late.environment)).launches
    }
    resources = [
        one.model_copy(update={"kernel": name, "registers": 60 + number})
        for number, name in enumerate(names)
    ]
    verdict = parent.verdict.model_copy(update={"resources": tuple(resources)})
    return replace(parent, source=candidate.source, verdict=verdict)


def test_each_specialisation_of_a_timed_case_has_a_line_that_names_the_case(
    figures: PromptContext,
) -> None:
    assert figures.resources[:3] == (
        f"{ROWS} (sm_90; rows): 60 registers, 41472 B shared, no spills",
        f"{BROAD} (sm_90; broad): 61 registers, 41472 B shared, no spills",
        f"{FEW} (sm_90; few): 62 registers, 41472 B shared, no spills",
    )


def test_specialisations_of_other_cases_have_one_line_together(figures: PromptContext) -> None:
    assert figures.resources[3:] == (
        "2 kernels of cases that are not timed: 63 to 64 registers, at most 41472 B shared,"
        " no spills",
    )


def test_the_machine_code_of_one_specialisation_stands_for_that_of_the_others(
    figures: PromptContext,
) -> None:
    first, *others = figures.machine_code
    assert first.startswith(f"{ROWS} (sm_90): ") and "1240 instructions" in first
    assert [line.partition(": ")[0] for line in others] == ["broad", "few"]
    for line in others:
        assert " fit on an SM: " in line and "2 block barriers in loops" in line
        assert "1240 instructions" not in line


def test_cases_with_the_same_launch_share_a_line(late: Request) -> None:
    found = prompt_context.prompt_context(late.elites[0][1], late).launches
    assert found == (
        "rows, broad: grid 4096 = 4096 blocks (31.03 per SM), block 256",
        "few: grid 1024 = 1024 blocks (7.76 per SM), block 256",
    )


def test_the_limiter_of_all_cases_is_said_once(late: Request) -> None:
    elite = late.elites[0][1]
    found = prompt_context.prompt_context(elite, late).brief
    assert found == "rows 60.00, broad 60.00, few 60.00 us (limited by issue)"
    first, *more = elite.verdict.modelled
    launch = first.launches[0].model_copy(update={"limiter": "dram"})
    other = first.model_copy(update={"launches": (launch,)})
    mixed = elite.verdict.model_copy(update={"modelled": (other, *more)})
    assert prompt_context.prompt_context(replace(elite, verdict=mixed), late).brief == (
        "rows 60.00 us (limited by dram), broad 60.00 us (limited by issue), few 60.00 us"
        " (limited by issue)"
    )


# ---------------------------------------------------------------- the last trials


def trial(late: Request, number: int, source: str, score: float | None) -> Evaluated:
    """A settled trial without a place; failed where it has no score."""
    some = late.recent[0]
    holder = late.elites[0][1]
    interval = holder.outcome.score
    assert interval is not None
    update = {"trial": number, "source_digest": source, "score": None}
    status = Status.wrong_result if score is None else Status.correct
    if score is not None:
        update["score"] = interval.model_copy(update={"value": score})
    return replace(
        some,
        outcome=some.outcome.model_copy(update={**update, "status": status}),
        verdict=some.verdict.model_copy(update={"status": status, "reason": f"of {number}"}),
    )


def test_of_the_configurations_of_a_source_the_fastest_is_shown(late: Request) -> None:
    recent = (trial(late, 31, "a", 3.0), trial(late, 32, "b", 9.0), trial(late, 33, "a", 4.0))
    shown = prompt_context.lessons(replace(late, recent=recent))
    assert [item.trial for item in shown] == [31, 32]


def test_slower_configurations_of_a_kernel_with_a_place_are_not_shown_but_their_failures_are(
    late: Request,
) -> None:
    held = late.elites[0][1].outcome.source_digest
    recent = (trial(late, 31, held, 3.0), trial(late, 32, held, None))
    shown = prompt_context.lessons(replace(late, recent=recent))
    assert [item.trial for item in shown] == [32]


def test_a_long_summary_is_cut_between_words(figures: PromptContext) -> None:
    assert len(figures.summary) <= MAX_SUMMARY and figures.summary.endswith(" ...")
    assert kernel_file.read(SPECIALISED).plan.summary.startswith(figures.summary[:-4])
