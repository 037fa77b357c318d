"""`evoengine resume RUN`: continues a run that was stopped."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Annotated, Any

import typer

from evoengine.cli import search_options as options
from evoengine.cli.run_argument import RUNS_DIR, Run, RunsDir


def resume(
    context: typer.Context,
    run: Run,
    runs_dir: RunsDir = RUNS_DIR,
    trials: Annotated[
        int | None, typer.Option(min=1, help="The new budget, including all earlier trials.")
    ] = None,
    plateau: options.Plateau = None,
    stop_at_roofline: options.StopAtRoofline = None,
    generator: options.Generator = None,
    replay_from: options.ReplayFrom = None,
    tune_share: options.TuneShare = None,
    model: options.Model = None,
    cost_cap: options.CostCap = None,
    token_cap: options.TokenCap = None,
    price: options.Price = None,
    temperature: options.Temperature = None,
    max_tokens: options.MaxTokens = None,
    timeout: options.Timeout = None,
    retries: options.Retries = None,
    patience: options.Patience = None,
    prompt_tokens: options.PromptTokens = None,
    prompts: options.PromptFolder = None,
    seed: Annotated[str | None, typer.Option(hidden=True)] = None,
    in_flight: Annotated[str | None, typer.Option(hidden=True)] = None,
    kernel: Annotated[list[str] | None, typer.Option(hidden=True)] = None,
    device: Annotated[str | None, typer.Option(hidden=True)] = None,
    check: Annotated[str | None, typer.Option(hidden=True)] = None,
    tier: Annotated[list[str] | None, typer.Option(hidden=True)] = None,
    method: Annotated[str | None, typer.Option(hidden=True)] = None,
    lessons_from: Annotated[list[str] | None, typer.Option(hidden=True)] = None,
    time_limit: options.TimeLimit = None,
    quiet: options.Quiet = False,
    json: Annotated[bool, typer.Option("--json", help="The result as JSON on stdout.")] = False,
) -> None:
    """Continue a run that was stopped or killed, with its stored settings.

    An option changes a setting from here on, and the run records the change. Seed, device, checks,
    starting kernels, method, tiers, lessons of earlier runs and the number of trials in flight
    cannot change, because the results so far depend on them.
    """
    from evoengine.cli.foreground import search
    from evoengine.cli.run_argument import find_run
    from evoengine.search.resume_run import resume_run

    paths = find_run(run, runs_dir)
    _refuse_fixed(context.params)
    begin = partial(resume_run, paths, options=options.run_options(context.params))
    raise typer.Exit(search(paths, begin, context.obj, time_limit, json, quiet))


def _refuse_fixed(given: Mapping[str, Any]) -> None:
    """Raises UsageError for an option that would invalidate the results so far."""
    from evoengine.errors import UsageError
    from evoengine.search.changes import FIXED_OPTIONS

    for name, why in FIXED_OPTIONS.items():
        if given[name.removeprefix("--").replace("-", "_")]:
            raise UsageError(
                f"a resume cannot change {name}: {why}; leave it out, or start a new run with it"
            )
