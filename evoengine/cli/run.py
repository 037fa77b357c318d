"""`evoengine run TASK`: starts a search."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from evoengine.cli import device_option
from evoengine.cli import search_options as options
from evoengine.cli.run_argument import RUNS_DIR, RunsDir
from evoengine.cli.task_argument import StartingKernels, Task

if TYPE_CHECKING:
    from evoengine.search.choose_run import RunChoice

Name = Annotated[
    str | None,
    typer.Option(
        "--run",
        metavar="NAME",
        help="The run's name; by default the task's name with the time.",
    ),
]
Trials = Annotated[
    int | None,
    typer.Option(min=1, help="The budget, including the starting kernels; by default the task's."),
]
InFlight = Annotated[
    int | None,
    typer.Option(
        min=1,
        help="The number of trials in flight at once; by default 8, and 16 for the tuner alone on a"
        " GPU.",
    ),
]
DespiteAudit = Annotated[
    bool,
    typer.Option(
        "--despite-audit",
        help="Start on a task whose gates let plainly wrong outputs through.",
    ),
]
MeasureBaselines = Annotated[
    bool,
    typer.Option(
        "--measure-baselines",
        help="Time the baselines anew, also where an earlier run on this GPU has timed them.",
    ),
]

LessonsFrom = Annotated[
    list[str] | None,
    typer.Option(
        metavar="RUN",
        help="Begin with the lessons of an earlier run, of any task; may be repeated.",
    ),
]


def run(
    context: typer.Context,
    task: Task,
    name: Name = None,
    runs_dir: RunsDir = RUNS_DIR,
    trials: Trials = None,
    plateau: options.Plateau = None,
    stop_at_roofline: options.StopAtRoofline = None,
    seed: Annotated[int, typer.Option(help="The seed of all random choices.")] = 0,
    generator: options.Generator = None,
    replay_from: options.ReplayFrom = None,
    method: options.Method = None,
    tier: options.Tiers = None,
    lessons_from: LessonsFrom = None,
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
    device: device_option.Device = "auto",
    check: device_option.Check = None,
    kernel: StartingKernels = None,
    in_flight: InFlight = None,
    despite_audit: DespiteAudit = False,
    measure_baselines: MeasureBaselines = False,
    time_limit: options.TimeLimit = None,
    quiet: options.Quiet = False,
    json: Annotated[bool, typer.Option("--json", help="The result as JSON on stdout.")] = False,
) -> None:
    """Search for faster kernels until the budget of trials is spent, or another end is reached.

    Ctrl-C stops the run, keeps everything so far and prints the command that resumes it.
    """
    from evoengine.cli.foreground import search
    from evoengine.search.choose_run import new_run_paths
    from evoengine.search.start_run import start_run

    choice = _choice(context.params, context.obj)
    paths = new_run_paths(runs_dir, name, choice.task)
    begin = partial(start_run, choice, paths)
    raise typer.Exit(search(paths, begin, context.obj, time_limit, json, quiet))


def _choice(given: Mapping[str, Any], environ: Mapping[str, str]) -> RunChoice:
    """What the parameters of `run` say; raises EvoError."""
    from evoengine.cli.run_argument import find_run
    from evoengine.search.choose_run import choose_run

    return choose_run(
        given["task"],
        options.run_options(given),
        seed=given["seed"],
        device=given["device"],
        checks=given["check"],
        kernels=given["kernel"] or [],
        in_flight=given["in_flight"],
        method=given["method"],
        tiers=given["tier"] or [],
        lessons_from=[find_run(run, given["runs_dir"]).root for run in given["lessons_from"] or []],
        despite_audit=given["despite_audit"],
        measure_baselines=given["measure_baselines"],
        environ=environ,
    )
