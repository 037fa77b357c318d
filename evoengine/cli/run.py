"""`evoengine run TASK`: one search from its first trial."""

from __future__ import annotations

import re
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from evoengine.cli.device_option import CHECK_HELP, DEVICE_HELP
from evoengine.cli.run_argument import RUNS_DIR


class GeneratorChoice(StrEnum):
    """config.GeneratorName, which is not imported here because it would cost the help 100 ms."""

    openai = "openai"
    tune = "tune"
    replay = "replay"


def run(
    context: typer.Context,
    task: Annotated[str, typer.Argument(help="A task file, or the name of a packaged task; see `evoengine tasks`.")],
    name: Annotated[str | None, typer.Option("--run", metavar="NAME", help="The run's name; by default the task's with the time.")] = None,
    runs_dir: Annotated[Path, typer.Option(help="Where runs are kept.")] = RUNS_DIR,
    trials: Annotated[int | None, typer.Option(min=1, help="The budget, starting kernels included; by default the task's.")] = None,
    seed: Annotated[int, typer.Option(help="Everything random follows from it.")] = 0,
    generator: Annotated[GeneratorChoice | None, typer.Option(help="Who proposes; by default openai with a key, else tune.")] = None,
    replay_from: Annotated[str | None, typer.Option(metavar="RUN", help="The run whose stored replies answer.")] = None,
    model: Annotated[str | None, typer.Option(help="The model that is asked.")] = None,
    cost_cap: Annotated[float | None, typer.Option(min=0, metavar="USD", help="Nothing is asked beyond this cost.")] = None,
    price: Annotated[
        str | None,
        typer.Option(metavar="USD/USD", help="A million prompt and completion tokens of the model, e.g. 2/8; known for OpenAI's."),
    ] = None,
    device: Annotated[str, typer.Option(help=DEVICE_HELP)] = "auto",
    check: Annotated[str | None, typer.Option(metavar="CHECKS", help=CHECK_HELP)] = None,
    kernel: Annotated[list[str] | None, typer.Option(metavar="FILE", help="A starting kernel in place of the task's; repeatable.")] = None,
    in_flight: Annotated[int | None, typer.Option(min=1, help="Trials under way at once.")] = None,
    json: Annotated[bool, typer.Option("--json", help="The result as JSON on stdout.")] = False,
) -> None:
    """Search for faster kernels until the budget of trials is spent.

    Ctrl-C stops; what is committed is kept and the command that resumes is printed.
    """
    from evoengine import wiring
    from evoengine.cli.run_argument import find_run
    from evoengine.cli.search import search

    choice = wiring.choose(
        task,
        trials=trials,
        seed=seed,
        generator=generator.value if generator else None,
        model=model,
        device=device,
        checks=check,
        kernels=kernel or [],
        in_flight=in_flight,
        cost_cap_usd=cost_cap,
        price_usd=_price(price) if price is not None else None,
        replay_from=find_run(replay_from, runs_dir).root if replay_from else None,
        environ=context.obj,
    )
    paths = wiring.new_run_paths(runs_dir, name, choice.task)
    raise typer.Exit(search(paths, lambda observe, stop, drop: wiring.start_run(choice, paths, observe, stop, drop, context.obj), json))


def _price(text: str) -> tuple[float, float]:
    from evoengine.errors import UsageError

    match = re.fullmatch(r"(\d+(?:\.\d+)?)/(\d+(?:\.\d+)?)", text)
    if not match:
        raise UsageError(f"expected --price USD/USD, for a million prompt and a million completion tokens, got {text!r}, e.g. --price 2/8")
    return float(match[1]), float(match[2])
