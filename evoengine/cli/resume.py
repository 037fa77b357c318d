"""`evoengine resume RUN`: continues a run that was stopped."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from evoengine.cli import search_options as options
from evoengine.cli.run_argument import RUNS_DIR


def resume(
    context: typer.Context,
    run: Annotated[
        str, typer.Argument(metavar="RUN", help="The run's name, or the path of its folder.")
    ],
    runs_dir: Annotated[Path, typer.Option(help="The folder of runs.")] = RUNS_DIR,
    trials: Annotated[
        int | None, typer.Option(min=1, help="The new budget, including all earlier trials.")
    ] = None,
    generator: options.Generator = None,
    replay_from: Annotated[
        str | None,
        typer.Option(
            metavar="RUN", help="With --generator replay: the run whose stored replies are used."
        ),
    ] = None,
    model: options.Model = None,
    cost_cap: options.CostCap = None,
    price: options.Price = None,
    temperature: options.Temperature = None,
    max_tokens: options.MaxTokens = None,
    timeout: options.Timeout = None,
    retries: options.Retries = None,
    patience: options.Patience = None,
    seed: Annotated[str | None, typer.Option(hidden=True)] = None,
    in_flight: Annotated[str | None, typer.Option(hidden=True)] = None,
    kernel: Annotated[list[str] | None, typer.Option(hidden=True)] = None,
    device: Annotated[str | None, typer.Option(hidden=True)] = None,
    check: Annotated[str | None, typer.Option(hidden=True)] = None,
    time_limit: options.TimeLimit = None,
    quiet: options.Quiet = False,
    json: Annotated[bool, typer.Option("--json", help="The result as JSON on stdout.")] = False,
) -> None:
    """Continue a run that was stopped or killed, with its stored settings.

    An option changes a setting from here on, and the run records the change. Seed, device, checks,
    starting kernels and the number of trials in flight cannot change, because the results so far
    depend on them.
    """
    from evoengine.cli.foreground import search
    from evoengine.cli.run_argument import find_run
    from evoengine.search import wiring
    from evoengine.search.changes import Wanted
    from evoengine.search.control import Control

    paths = find_run(run, runs_dir)
    _refuse(
        {
            "--seed": seed,
            "--in-flight": in_flight,
            "--kernel": kernel,
            "--device": device,
            "--check": check,
        }
    )
    wanted = Wanted(
        trials=trials,
        generator=generator.value if generator else None,
        replay_from=str(find_run(replay_from, runs_dir).root.resolve()) if replay_from else None,
        model=model,
        price_usd=options.price_of(price),
        cost_cap_usd=cost_cap,
        temperature=temperature,
        max_tokens=max_tokens,
        timeout_s=timeout,
        retries=retries,
        patience_s=patience,
    )
    raise typer.Exit(
        search(
            paths,
            lambda observe, stop, drop: wiring.resume_run(
                paths, Control(observe, stop, drop, context.obj, time_limit), wanted
            ),
            json,
            quiet,
        )
    )


def _refuse(given: dict[str, object]) -> None:
    """Raises UsageError for an option that would invalidate the results so far."""
    from evoengine.errors import UsageError
    from evoengine.search.changes import KEPT

    for name, value in given.items():
        if value:
            raise UsageError(
                f"a resume cannot change {name}: {KEPT[name]}; leave it out, or start a new run"
                " with it"
            )
