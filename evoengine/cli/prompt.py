"""`evoengine prompt TASK`: prints the prompt that a model would get."""

from __future__ import annotations

from dataclasses import asdict, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from evoengine.cli import search_options as options
from evoengine.cli.run_argument import RUNS_DIR, RunsDir
from evoengine.cli.task_argument import StartingKernels

if TYPE_CHECKING:
    from evoengine.config import PromptSettings
    from evoengine.generate.prompt_parts import PromptText
    from evoengine.search.prompt_request import PromptRequest


class OperatorName(StrEnum):
    """The operators of generate/operators.py."""

    first = "first"
    mutate = "mutate"
    crossover = "crossover"


Task = Annotated[
    str | None,
    typer.Argument(metavar="TASK", help="A task file, or the name of a packaged task."),
]
Run = Annotated[
    str | None,
    typer.Option(metavar="RUN", help="Print the next prompt of this run, instead of a task's."),
]
Operator = Annotated[
    OperatorName | None, typer.Option(help="What to ask for; by default the run's choice.")
]
UnusableReply = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Print the repair prompt that follows this unusable reply."),
]
DescribedDevice = Annotated[
    str | None,
    typer.Option(help="The device to describe, as for `run`; it is not used."),
]
Seed = Annotated[
    int | None,
    typer.Option(help="The run's seed, which chooses tier and parents; 0 by default."),
]


def prompt(
    task: Task = None,
    run: Run = None,
    operator: Operator = None,
    reply: UnusableReply = None,
    kernel: StartingKernels = None,
    device: DescribedDevice = None,
    seed: Seed = None,
    method: options.Method = None,
    tier: options.Tiers = None,
    prompt_tokens: options.PromptTokens = None,
    prompts: options.PromptFolder = None,
    runs_dir: RunsDir = RUNS_DIR,
    json: Annotated[
        bool, typer.Option("--json", help="JSON on stdout: the prompt, its size and its parents.")
    ] = False,
) -> None:
    """Print the prompt that a model would get, and its number of tokens.

    The prompt goes to stdout; its size in tokens (an estimate), as a whole and by part, goes to
    stderr. Nothing is sent, and no key, network or GPU is needed. For a TASK it is the first prompt
    of a run, except that the starting kernels have no times, because they are not evaluated. For
    --run it is exactly the next prompt of that run, unless --prompts or --prompt-tokens change it.
    """
    from evoengine.cli import output
    from evoengine.report import as_json
    from evoengine.search import prompt_request

    asked = _request(task, run, runs_dir, kernel or [], device, seed, method, tier or [])
    settings = _settings(asked.settings, prompt_tokens, prompts)
    notes = [*asked.notes, *prompt_request.template_notes(settings)]
    asked = replace(asked, settings=settings, notes=notes)
    rendered = prompt_request.render(asked, operator.value if operator else None, reply)
    facts = {**rendered.facts, **_size(rendered.prompt), "notes": asked.notes}
    for note in asked.notes:
        output.say(f"note: {note}")
    output.say(_summary(asked, facts))
    for line in _lines_of_parts(rendered.prompt):
        output.say(line)
    text = rendered.prompt.text
    print(
        as_json.dumps({**facts, "prompt": text}) if json else text,
        end="\n" if json else "",
    )


def _request(
    task: str | None,
    run: str | None,
    runs_dir: Path,
    kernels: list[str],
    device: str | None,
    seed: int | None,
    method: str | None,
    tiers: list[str],
) -> PromptRequest:
    """The first request of a run of `task`, or the next one of `run`; raises EvoError."""
    from evoengine.cli.run_argument import find_run
    from evoengine.errors import UsageError
    from evoengine.search import prompt_request

    if (task is None) == (run is None):
        raise UsageError(
            "expected either a TASK or --run RUN, got " + ("neither" if task is None else "both")
        )
    if run is None:
        return prompt_request.request_of_task(
            str(task), kernels, device or "auto", seed or 0, method or "full", tiers
        )
    if kernels or device or method or tiers or seed is not None:
        raise UsageError(
            "--kernel, --device, --seed, --method and --tier are for a TASK; --run has its own"
        )
    return prompt_request.request_of_run(find_run(run, runs_dir))


def _settings(stored: PromptSettings, tokens: int | None, folder: Path | None) -> PromptSettings:
    """`stored` with what the command line says."""
    from evoengine.search.run_options import RunOptions

    given = RunOptions(
        prompt_tokens=tokens, prompts_folder=str(folder.resolve()) if folder else None
    )
    return stored.model_copy(update=given.prompt_settings)


def _size(prompt: PromptText) -> dict[str, object]:
    from evoengine.generate.token_estimate import COUNTED_AS, bytes_of_text

    return {
        "bytes": bytes_of_text(prompt.text),
        "tokens": prompt.tokens,
        "tokens_are": COUNTED_AS,
        "parts": [asdict(part) for part in prompt.parts],
    }


def _lines_of_parts(prompt: PromptText) -> list[str]:
    """The tokens of each part, and which were left out."""
    lines = []
    for part in prompt.parts:
        left = part.items - part.shown
        if part.items:
            left_out = f", {left} of {part.items} left out" if left else ""
            lines.append(f"  {part.name}: {part.tokens:,} tokens{left_out}")
    return lines


def _summary(asked: PromptRequest, facts: dict[str, object]) -> str:
    of = f"trial {asked.request.trial} of {asked.name}: {facts['operator']}, tier {facts['tier']}"
    size = f"{facts['bytes']:,} bytes, about {facts['tokens']:,} tokens ({facts['tokens_are']})"
    return f"{of}; {size}"
