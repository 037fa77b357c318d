"""Options that `run` and `resume` share: the model, time limits and verbosity."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from evoengine.generate.method_registry import MODULES as METHODS
from evoengine.generate.registry import MODULES

if TYPE_CHECKING:
    from evoengine.search.run_options import RunOptions


def run_options(params: Mapping[str, Any]) -> RunOptions:
    """The settings among the parameters of `run` or `resume`, which name them alike.

    Raises UsageError, and StoreError where there is no run to replay from.
    """
    from evoengine.cli.run_argument import find_run
    from evoengine.search.run_options import RunOptions

    replay_from = params["replay_from"]
    return RunOptions(
        trials=params["trials"],
        plateau=params["plateau"],
        stop_at_roofline=params["stop_at_roofline"],
        generator=params["generator"],
        replay_from=(
            str(find_run(replay_from, params["runs_dir"]).root.resolve()) if replay_from else None
        ),
        tune_share=params["tune_share"],
        model=params["model"],
        price_usd=parse_price(params["price"]),
        cost_cap_usd=params["cost_cap"],
        token_cap=params["token_cap"],
        temperature=params["temperature"],
        max_tokens=params["max_tokens"],
        timeout_s=params["timeout"],
        retries=params["retries"],
        patience_s=params["patience"],
        prompt_tokens=params["prompt_tokens"],
        prompts_folder=str(params["prompts"].resolve()) if params["prompts"] else None,
    )


def _generator(name: str) -> str:
    from evoengine.errors import hint

    if name not in MODULES:
        raise typer.BadParameter(f"no generator {name!r}{hint(name, MODULES)}")
    return name


def _method(name: str) -> str:
    from evoengine.errors import hint

    if name not in METHODS:
        raise typer.BadParameter(f"no method {name!r}{hint(name, METHODS)}")
    return name


def _time(text: str) -> float:
    from evoengine.duration import seconds_of

    try:
        return seconds_of(text)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None


def parse_price(text: str | None) -> tuple[float, float] | None:
    """The two prices in `2/8`; raises UsageError."""
    from evoengine.errors import UsageError

    if text is None:
        return None
    match = re.fullmatch(r"(\d+(?:\.\d+)?)/(\d+(?:\.\d+)?)", text)
    if not match:
        raise UsageError(
            "expected --price USD/USD, for a million prompt and a million completion tokens, got"
            f" {text!r}, e.g. --price 2/8"
        )
    return _finite(float(match[1])), _finite(float(match[2]))


def _finite(value: float) -> float:
    if not math.isfinite(value):
        raise typer.BadParameter(f"expected an amount of USD, got {value}")
    return value


def _amount(value: float | None) -> float | None:
    return None if value is None else _finite(value)


def _share(value: float | None) -> float | None:
    if value is not None and math.isnan(value):
        raise typer.BadParameter(f"expected a share from 0 to 1, got {value}")
    return value


def _positive_share(value: float | None) -> float | None:
    if value is not None and not 0 < value <= 1:
        raise typer.BadParameter(f"expected a share above 0 and up to 1, got {value}")
    return value


Generator = Annotated[
    str | None,
    typer.Option(
        parser=_generator,
        metavar=f"[{'|'.join(MODULES)}]",
        help="What proposes candidates; by default openai if a key is set, else tune.",
    ),
]
Method = Annotated[
    str | None,
    typer.Option(
        parser=_method,
        metavar=f"[{'|'.join(METHODS)}]",
        help="What a model sees of the run and builds on; full by default.",
    ),
]
Tiers = Annotated[
    list[str] | None,
    typer.Option(
        "--tier",
        metavar="NAME[=SHARE]",
        help=(
            "Search this tier, in this share of the trials; may be repeated. By default tiers with"
            " a starting kernel have equal shares, the others 1 in 8 together."
        ),
    ),
]
Model = Annotated[str | None, typer.Option(help="The model to ask; gpt-4.1 by default.")]
Price = Annotated[
    str | None,
    typer.Option(
        metavar="USD/USD",
        help="Price of a million prompt/completion tokens, e.g. 2/8; known for OpenAI's models.",
    ),
]
CostCap = Annotated[
    float | None,
    typer.Option(
        min=0,
        callback=_amount,
        metavar="USD",
        help=(
            "Send no request that could raise the cost above this; an endpoint that ignores"
            " --max-tokens can still exceed it."
        ),
    ),
]
TokenCap = Annotated[
    int | None,
    typer.Option(
        min=0,
        metavar="N",
        help=(
            "Send no request that could raise the tokens of all prompts and replies above this; as"
            " with --cost-cap, --max-tokens must be kept."
        ),
    ),
]
Plateau = Annotated[
    int | None,
    typer.Option(
        min=1,
        metavar="N",
        help="End after N trials in which the fastest kernel of no tier became faster.",
    ),
]
StopAtRoofline = Annotated[
    float | None,
    typer.Option(
        callback=_positive_share,
        metavar="SHARE",
        help=(
            "End once the least time that the device allows is this share of the time of a tier's"
            " fastest kernel, e.g. 0.8; the task must declare its work."
        ),
    ),
]
Temperature = Annotated[
    float | None,
    typer.Option(min=0, max=2, help="The sampling temperature; by default the endpoint's."),
]
MaxTokens = Annotated[
    int | None, typer.Option(min=1, help="Maximum tokens of a reply; 16384 by default.")
]
Timeout = Annotated[
    float | None,
    typer.Option(
        parser=_time, metavar="TIME", help="Time limit of one reply, e.g. 300s; 5m by default."
    ),
]
Retries = Annotated[
    int | None,
    typer.Option(
        min=0,
        help=("How often a request that fails is repeated while others succeed; 6 by default."),
    ),
]
Patience = Annotated[
    float | None,
    typer.Option(
        parser=_time,
        metavar="TIME",
        help="Stop if the endpoint answers no request for so long; 30m by default.",
    ),
]
PromptTokens = Annotated[
    int | None,
    typer.Option(
        min=1,
        metavar="N",
        help=(
            "The budget of a prompt in estimated tokens, without the kernels that it is about; 3700"
            " by default. What the task needs is always in it."
        ),
    ),
]
PromptFolder = Annotated[
    Path | None,
    typer.Option(
        "--prompts",
        metavar="DIR",
        help="Your own prompt templates; those that it lacks are the package's.",
    ),
]
TimeLimit = Annotated[
    float | None,
    typer.Option(
        parser=_time, metavar="TIME", help="Stop after this time, e.g. 2h; the run can be resumed."
    ),
]
Quiet = Annotated[
    bool,
    typer.Option(
        "--quiet", "-q", help="Print only notes, errors and the result, no line for each trial."
    ),
]
ReplayFrom = Annotated[
    str | None,
    typer.Option(
        metavar="RUN", help="With --generator replay: the run whose stored replies are used."
    ),
]
TuneShare = Annotated[
    float | None,
    typer.Option(
        min=0,
        max=1,
        callback=_share,
        metavar="X",
        help=(
            "With a generator that asks: the share of the trials that tune what the model has"
            " written, without asking; 0 for none. 0.5 by default, with --method best_of_n 0."
        ),
    ),
]
