"""What a prompt says of wrong kernels, whole, as a model reads it: golden/last_trials.md.

python -m tests.generate.test_golden_prompts    # writes it anew; read the difference
"""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

from evoengine import atomic_files
from evoengine.config import PromptSettings
from evoengine.generate.operators import OperatorChoice
from evoengine.generate.prompt_context import MAX_DIAGNOSIS_WORDS
from evoengine.generate.prompt_templates import Prompts
from evoengine.protocols import Evaluated
from evoengine.records import Diagnosis, DiagnosisKind, ErrorMap, Forensics, Status
from tests.generate.row_sums_task import HIDDEN_SIZES, evaluated, request, write_task

GOLDEN = Path(__file__).parent / "golden" / "last_trials.md"
FIRST, NEXT = "# What the last trials taught", "\n# "
# as forensics says them of kernels of tests/bugs and tests/bugs_second
MASK = (
    "The mask is missing in the tiles on the diagonal: the output equals the reference with the"
    ' mask missing inside the 32x32 tiles that it cuts (`scores.masked_fill(hidden, float("-inf"))`'
    " in line 30 of sdpa.py)."
)
FRAGMENT = (
    "In every 16x8 tile of out the same places are mixed up, rows and columns in the order of"
    " another fragment layout: [0, 1] holds [8, 0], [0, 3] holds [8, 2], [0, 5] holds [8, 4]."
)
ROWS_OF_A = (
    "The rows of a are in the wrong order, with every 16 in another order, interleaved by 2, as a"
    " fragment with another layout: the output equals the reference with rows of a in another"
    " order, with every 16 in another order, interleaved by 2, in `a @ b` in line 11 of"
    " matmul_fp16.py."
)
VALUES = (
    "v is loaded with every 8x8 tile transposed, as a fragment with another layout: the output"
    " equals the reference with v every 8x8 tile transposed in `torch.softmax(scores, dim=-1) @ v`"
    " in line 31 of sdpa.py."
)
ROWS = "out is wrong at rows 0..30 of every 32 along S."
UNWRITTEN = (
    "540 of 6300 elements of out are never written: only the last 6 rows of 70 along N (64..69)."
)


def wrong(trial: int, reason: str, *said: tuple[DiagnosisKind, str]) -> Evaluated:
    """A trial whose output is wrong, with what was found out about it."""
    found = Forensics(
        case="main",
        distribution="normal",
        output="out",
        diagnoses=tuple(Diagnosis(kind=kind, sentence=words, share=1.0) for kind, words in said),
        error_map=ErrorMap(
            output="out", row_axes=(), column_axis="N", rows=1, columns=2, cells=("x9",)
        ),
    )
    plain = evaluated(trial, status=Status.wrong_result, reason=reason)
    return replace(plain, verdict=plain.verdict.model_copy(update={"forensics": found}))


KIND = DiagnosisKind
ATTEMPTS = (
    wrong(4, "case main: 5 of 5 input sets fail", (KIND.mask, MASK), (KIND.period, ROWS)),
    wrong(
        5,
        "case main: 8.57% of elements fail, 540 NaN",
        (KIND.never_written, UNWRITTEN),
        (KIND.region, "out is wrong: only the last 6 rows of 70 along N (64..69)."),
    ),
    wrong(  # more than a prompt may say
        6,
        "case main: 49.58% of elements fail",
        (KIND.fragment_layout, FRAGMENT),
        (KIND.changed_input, ROWS_OF_A),
        (KIND.changed_step, VALUES),
        (KIND.period, ROWS),
    ),
    wrong(
        7,
        "is wrong in a hidden case",
        (KIND.never_written, "7919 elements are never written in case zq_ragged."),
    ),
)


def lessons_of(operator: str, folder: Path) -> str:
    """The part of a prompt about the last trials, of which all are wrong."""
    task = write_task(folder)
    parents = (evaluated(1), evaluated(2))
    asked = request(task, elites=parents, recent=ATTEMPTS, seeds=(evaluated(1),))
    choice = OperatorChoice(operator, "fp32", parents if operator != "first" else ())
    text = Prompts(task, PromptSettings(tokens=9000)).render(choice, asked).text
    part = text[text.index(FIRST) :]
    return part[: part.index(NEXT)].strip() + "\n"


def test_wrong_attempts_are_in_every_prompt_with_their_findings(tmp_path: Path) -> None:
    golden = GOLDEN.read_text(encoding="utf-8")
    for operator in ("first", "mutate", "crossover"):
        assert lessons_of(operator, tmp_path) == golden, operator


def test_the_golden_lessons_keep_their_limits_and_hide_what_is_hidden() -> None:
    golden = GOLDEN.read_text(encoding="utf-8")
    lists = [part.split("\n\n")[0] for part in golden.split("most telling first:\n")[1:]]
    assert len(lists) == len(ATTEMPTS)
    for shown in lists:
        words = " ".join(line.removeprefix("- ") for line in shown.splitlines()).split()
        assert 0 < len(words) <= MAX_DIAGNOSIS_WORDS
    assert f"- {FRAGMENT}\n- {ROWS_OF_A}\n\n" in golden  # what follows passes the limit
    assert not [size for size in HIDDEN_SIZES if size in golden]


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made:
        atomic_files.write_text(GOLDEN, lessons_of("first", Path(made)))
