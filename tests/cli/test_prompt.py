from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from evoengine.cli.search_options import PromptTokens
from evoengine.config import PROMPT_TOKENS
from evoengine.paths import RunPaths
from evoengine.protocols import ProposalRow, ReplyRow
from evoengine.records import Proposal
from evoengine.store.run_folder import open_run
from tests.cli.conftest import Call
from tests.scale_task import kernel

SHAPE = ("--in-flight", "2", "--model", "scripted", "--price", "1/1")


def sent(run: str, trial: int) -> str:
    with open_run(RunPaths(Path("runs") / run), read_only=True) as folder:
        row = folder.store.get(ReplyRow, trial)
    assert row is not None
    return row.reply.prompt


# trials that ask: every second one tunes
@pytest.mark.parametrize("trials", [2, 6, 12])
def test_the_next_prompt_of_a_run_is_the_one_that_is_sent(
    asking: Call, task: Path, monkeypatch: pytest.MonkeyPatch, trials: int
) -> None:
    assert asking("run", task, "--run", "short", "--trials", trials, *SHAPE).code == 0
    assert asking("run", task, "--run", "long", "--trials", trials + 1, *SHAPE).code == 0
    monkeypatch.delenv("OPENAI_API_KEY")
    monkeypatch.delenv("OPENAI_BASE_URL")
    found = asking("prompt", "--run", "short")
    assert found.code == 0, found.err
    assert found.out == sent("long", trials)
    assert "still change" not in found.err and "all 2 trials" in found.err.replace(
        f"all {trials} ", "all 2 "
    )
    facts = json.loads(asking("prompt", "--run", "short", "--json").out)
    assert facts["prompt"] == found.out and facts["trial"] == trials
    assert facts["bytes"] == len(found.out.encode()) and facts["tokens"] == -(-facts["bytes"] // 4)
    assert facts["tokens_are"] == "an estimate: UTF-8 bytes / 4"
    assert f"{facts['tokens']:,} tokens (an estimate: UTF-8 bytes / 4)" in found.err


def test_a_prompt_that_verdicts_may_still_change_says_so(asking: Call, task: Path) -> None:
    asking(
        "run",
        task,
        "--run",
        "one",
        "--trials",
        "5",
        "--in-flight",
        "1",
        "--model",
        "scripted",
        "--price",
        "1/1",
    )
    assert "may still change" not in asking("prompt", "--run", "one").err
    with open_run(RunPaths(Path("runs/one"))) as folder:
        folder.store.append(ProposalRow(5, Proposal(operator="first", source=kernel("late"))))
    found = asking("prompt", "--run", "one")
    assert (
        found.code == 0
        and "other trials before trial 6 are not, and may still change this prompt" in found.err
    )


def test_the_first_prompt_of_a_task_needs_no_key_and_shows_its_kernels(
    call: Call, task: Path
) -> None:
    found = call("prompt", task)
    assert found.code == 0, found.err
    assert "def forward(x)" in found.out and "# Your reply" in found.out
    assert "no kernel is evaluated: the starting kernels have no times" in found.err
    assert (
        "trial 2 of scale: first, tier " in found.err and "NVIDIA L4, modelled, sm_89" in found.out
    )
    # those of the tier that the prompt is for
    tier = re.search(r"first, tier (\w+)", found.err)[1]
    solution = {
        "fp32": r"- Trial 0, scale_a \(fp32, place 1\)",
        "fp16": r"- Trial 1, scale_b \(fp16,",
    }
    assert re.search(solution[tier], found.out)
    assert " us" not in found.out.partition("# The best solutions so far")[2].partition("\n# ")[0]
    # of the hidden case
    assert "77" not in found.out.partition("\nCases, with")[2].partition("# The file")[0]


def test_the_first_prompt_of_a_task_is_that_of_a_run_without_results(
    asking: Call, task: Path
) -> None:
    asking("run", task, "--run", "one", *SHAPE)
    facts = json.loads(asking("prompt", task, "--json").out)
    assert facts["trial"] == 2 and facts["operator"] == "first"
    mine, theirs = (
        text.partition("# The file you write")[0] for text in (facts["prompt"], sent("one", 2))
    )
    assert mine == theirs
    mine, theirs = (
        text.partition("# What to do now")[2] for text in (facts["prompt"], sent("one", 2))
    )
    assert mine == theirs


@pytest.mark.parametrize(("operator", "parents"), [("first", 0), ("mutate", 1), ("crossover", 2)])
def test_an_operator_can_be_asked_for(call: Call, task: Path, operator: str, parents: int) -> None:
    facts = json.loads(call("prompt", task, "--operator", operator, "--json").out)
    assert facts["operator"] == operator and len(facts["parents"]) == parents


def test_the_tokens_of_a_prompt_are_printed_by_part(call: Call, task: Path) -> None:
    found = call("prompt", task, "--operator", "mutate", "--json", "--prompt-tokens", "9000")
    facts = json.loads(found.out)
    parts = {part["name"]: part for part in facts["parts"]}
    assert {"task", "format", "time", "correctness", "what to do", "reply"} <= set(parts)
    # each part is rounded up, and one empty line lies between two
    assert abs(sum(part["tokens"] for part in parts.values()) - facts["tokens"]) <= len(parts)
    assert f"\n  task: {parts['task']['tokens']:,} tokens\n" in found.err
    small = call("prompt", task, "--operator", "mutate", "--prompt-tokens", "1")
    assert "  advice: 0 tokens, 1 of 1 left out\n" in small.err
    assert len(small.out) < len(facts["prompt"]) and "# What to think about" not in small.out


def test_the_help_names_the_default_budget(call: Call) -> None:
    assert f"{PROMPT_TOKENS} by default" in " ".join(str(PromptTokens.__metadata__[0].help).split())


def test_own_templates_can_be_tried(call: Call, task: Path, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "_reply.jinja").write_text("# Mine\n")
    assert call("prompt", task, "--prompts", "mine").out.endswith("\n# Mine\n")
    (tmp_path / "mine" / "_reply.jinja").write_text("\n{{ nothing }}\n")
    found = call("prompt", task, "--prompts", "mine")
    assert found.code == 2 and "mine/_reply.jinja:2: 'nothing' is undefined" in found.err


def test_a_run_keeps_its_prompt_options_and_a_resume_may_change_them(
    asking: Call, task: Path, tmp_path: Path
) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "_reply.jinja").write_text("# Mine\n")
    options = ("--prompts", "mine", "--prompt-tokens", "2900", "--tune-share", "0")
    assert asking("run", task, "--run", "one", "--trials", "3", *SHAPE, *options).code == 0
    assert sent("one", 2).endswith("\n# Mine\n")
    given = asking("prompt", "--run", "one").out
    assert given.endswith("\n# Mine\n") and "# Mine" not in asking("prompt", task).out
    assert asking("resume", "one", "--trials", "4").code == 0
    assert sent("one", 3) == given
    more = asking("resume", "one", "--trials", "5", "--prompt-tokens", "9000")
    assert "--prompt-tokens 2900 -> 9000" in more.err
    assert sent("one", 4).endswith("\n# Mine\n") and len(sent("one", 4)) > len(given)


def test_templates_that_cannot_be_used_stop_a_run_before_it_starts(
    asking: Call, task: Path, tmp_path: Path
) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "frist.jinja").write_text("x")
    found = asking("run", task, "--run", "one", "--trials", "3", *SHAPE, "--prompts", "mine")
    assert found.code == 2 and "frist.jinja: no prompt uses a template of this name" in found.err
    assert not (tmp_path / "runs").exists()


def test_an_operator_without_enough_parents_is_refused(call: Call, task: Path) -> None:
    found = call("prompt", task, "--operator", "crossover", "--kernel", "scale_a.cu")
    assert (
        found.code == 2
        and "crossover needs 2 correct kernels with different sources, there is 1" in found.err
    )


def test_a_reply_without_a_kernel_gives_the_repair_turn(
    call: Call, task: Path, tmp_path: Path
) -> None:
    (tmp_path / "bad.txt").write_text("I would rather talk about the weather.")
    (tmp_path / "good.txt").write_text(f"```cuda\n{kernel('fine')}```\n")
    found = call("prompt", task, "--reply", "bad.txt")
    assert (
        found.code == 0
        and "rather talk about the weather" in found.out
        and "# Your last reply cannot be used" in found.out
    )
    assert found.out.startswith(call("prompt", task).out) and ": repair, tier" in found.err
    found = call("prompt", task, "--reply", "good.txt")
    assert found.code == 2 and "good.txt: this reply has a usable kernel" in found.err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "expected either a TASK or --run RUN, got neither"),
        (["layernorm", "--run", "one"], "expected either a TASK or --run RUN, got both"),
        (["--run", "one", "--seed", "3"], "--seed, --method and --tier are for a TASK"),
        (["--run", "one", "--tier", "fp32"], "--tier are for a TASK; --run has its own"),
        (["layernorm", "--reply", "nowhere"], "--reply: nowhere cannot be read"),
        (["layernorm", "--device", "emulator:x"], "no target 'x'"),
    ],
)
def test_wrong_combinations_of_options_are_refused(
    call: Call, arguments: list[str], words: str
) -> None:
    found = call("prompt", *arguments)
    assert found.code == 2 and words in found.err and found.out == ""


def test_the_target_of_a_device_is_in_the_prompt(call: Call) -> None:
    assert (
        "NVIDIA A100 SXM 80GB, modelled, sm_80"
        in call("prompt", "layernorm", "--device", "emulator:a100").out
    )


def test_a_prompt_of_a_task_can_be_of_one_tier(call: Call, task: Path) -> None:
    for tier in ("fp16", "fp32"):
        for seed in range(3):
            found = call("prompt", task, "--tier", tier, "--seed", seed, "--json")
            facts = json.loads(found.out)
            assert facts["tier"] == tier and f"precision: {tier}`" in facts["prompt"]
    refused = call("prompt", task, "--tier", "fp61")
    assert refused.code == 2 and "--tier fp61: no tier 'fp61'" in refused.err


def test_a_resume_says_which_templates_changed_and_records_it(
    asking: Call, task: Path, tmp_path: Path
) -> None:
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "_reply.jinja").write_text("# Mine\n")
    (mine / "_best.jinja").write_text("")
    options = ("--prompts", "mine", "--tune-share", "0")
    assert asking("run", task, "--run", "one", "--trials", "3", *SHAPE, *options).code == 0
    assert "templates" not in asking("resume", "one", "--trials", "4").err
    assert "templates" not in asking("prompt", "--run", "one").err
    (mine / "_reply.jinja").write_text("# Another\n")
    (mine / "_best.jinja").unlink()
    (mine / "_advice.jinja").write_text("")
    changed = f"templates in {mine}: _reply.jinja changed, _advice.jinja added, _best.jinja removed"
    noted = asking("prompt", "--run", "one")
    assert f"note: {changed}, since the run read them" in noted.err
    other = asking("prompt", "--run", "one", "--prompts", "mine")
    assert other.out == noted.out and "since the run" not in other.err
    found = asking("resume", "one", "--trials", "5")
    assert f"changed from trial 4 on: {changed}" in found.err
    assert sent("one", 4) == noted.out and sent("one", 4).endswith("\n# Another\n")
    rows = json.loads(asking("show", "one", "--json").out)
    assert f"from trial 4 on, {changed}" in rows["changes"]
    assert "templates" not in asking("resume", "one", "--trials", "6").err


@pytest.mark.sampled("name", one_in=3)
@pytest.mark.parametrize("name", ["mutate", "crossover", "repair", "_solutions", "_directions"])
def test_a_fault_in_a_template_of_a_later_prompt_stops_a_run_before_anything_is_asked(
    asking: Call, task: Path, tmp_path: Path, name: str
) -> None:
    mine = tmp_path / "mine"
    mine.mkdir()
    template = mine / f"{name}.jinja"
    template.write_text("\n{{ nothing }}\n")
    run = ("run", task, "--run", "one", "--trials", "3", *SHAPE, "--tune-share", "0")
    found = asking(*run, "--prompts", "mine")
    assert found.code == 2 and f"{template}:2: 'nothing' is undefined" in found.err
    assert not (tmp_path / "runs").exists()
    assert asking(*run).code == 0
    found = asking("resume", "one", "--trials", "9", "--prompts", "mine")
    assert found.code == 2 and f"{template}:2: 'nothing' is undefined" in found.err
    assert json.loads(asking("show", "one", "--json").out)["changes"] == []
    template.unlink()
    (mine / "_reply.jinja").write_text("# Mine\n")
    assert asking("resume", "one", "--trials", "4", "--prompts", "mine").code == 0
    assert sent("one", 3).endswith("\n# Mine\n")
