"""`evoengine prompt TASK`: what a model would be sent."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from evoengine.cli.run_argument import RUNS_DIR

if TYPE_CHECKING:
    from evoengine.search.prompt_request import Asked

BYTES_A_TOKEN = 4  # of English and code, by the tokenizers of today's models; none of them is asked
COUNTED_AS = f"an estimate: UTF-8 bytes / {BYTES_A_TOKEN}"


class OperatorName(StrEnum):
    """What generate/operators.py chooses from."""

    first = "first"
    mutate = "mutate"
    crossover = "crossover"


def prompt(
    task: Annotated[
        str | None, typer.Argument(help="A task file, or the name of a packaged task.")
    ] = None,
    run: Annotated[
        str | None,
        typer.Option(metavar="RUN", help="A stored run in place of a task: its next prompt."),
    ] = None,
    operator: Annotated[
        OperatorName | None, typer.Option(help="What to ask for; by default what the run would.")
    ] = None,
    reply: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="A reply without a usable kernel: the repair turn after it."
        ),
    ] = None,
    kernel: Annotated[
        list[str] | None,
        typer.Option(metavar="FILE", help="A starting kernel in place of the task's; repeatable."),
    ] = None,
    device: Annotated[
        str | None,
        typer.Option(help="The device to write for, as for `run`; it is described, not used."),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(help="The run's seed, 0 by default: it chooses tier and parents.")
    ] = None,
    runs_dir: Annotated[Path, typer.Option(help="Where runs are kept.")] = RUNS_DIR,
    json: Annotated[
        bool, typer.Option("--json", help="The prompt with its size and parents as JSON on stdout.")
    ] = False,
) -> None:
    """Print what a model would be sent, and its tokens.

    The prompt goes to stdout, its size in tokens (an estimate) to stderr. No key, no network and no
    GPU are needed, and nothing is sent. For a TASK: the first prompt of a run, in which the
    starting kernels stand without times, because nothing has judged them. For --run: the next
    prompt of that run, exactly.
    """
    from evoengine.cli import output
    from evoengine.cli.run_argument import find_run
    from evoengine.errors import UsageError
    from evoengine.report import as_json
    from evoengine.search import prompt_request

    if (task is None) == (run is None):
        raise UsageError(
            "expected either a TASK or --run RUN, got " + ("neither" if task is None else "both")
        )
    if run is None:
        asked = prompt_request.of_task(str(task), kernel or [], device or "auto", seed or 0)
    elif kernel or device or seed is not None:
        raise UsageError("--kernel, --device and --seed are for a TASK; --run has its own")
    else:
        asked = prompt_request.of_run(find_run(run, runs_dir))
    rendered = prompt_request.render(asked, operator.value if operator else None, reply)
    facts = {**rendered.facts, **_size(rendered.text), "notes": asked.notes}
    for note in asked.notes:
        output.say(f"note: {note}")
    output.say(_summary(asked, facts))
    print(
        as_json.dumps({**facts, "prompt": rendered.text}) if json else rendered.text,
        end="\n" if json else "",
    )


def _size(text: str) -> dict[str, object]:
    count = len(text.encode("utf-8", "replace"))
    return {"bytes": count, "tokens": -(-count // BYTES_A_TOKEN), "tokens_are": COUNTED_AS}


def _summary(asked: Asked, facts: dict[str, object]) -> str:
    of = f"trial {asked.request.trial} of {asked.name}: {facts['operator']}, tier {facts['tier']}"
    return f"{of}; {facts['bytes']:,} bytes, about {facts['tokens']:,} tokens ({COUNTED_AS})"
