"""Options that `run` and `resume` share: of the model, and of how long a search takes and what it
says.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

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
        generator=params["generator"],
        replay_from=(
            str(find_run(replay_from, params["runs_dir"]).root.resolve()) if replay_from else None
        ),
        model=params["model"],
        price_usd=price_of(params["price"]),
        cost_cap_usd=params["cost_cap"],
        temperature=params["temperature"],
        max_tokens=params["max_tokens"],
        timeout_s=params["timeout"],
        retries=params["retries"],
        patience_s=params["patience"],
    )


def _generator(name: str) -> str:
    from evoengine.errors import hint

    if name not in MODULES:
        raise typer.BadParameter(f"no generator {name!r}{hint(name, MODULES)}")
    return name


def _time(text: str) -> float:
    from evoengine.duration import seconds_of

    try:
        return seconds_of(text)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None


def price_of(text: str | None) -> tuple[float, float] | None:
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


Generator = Annotated[
    str | None,
    typer.Option(
        parser=_generator,
        metavar=f"[{'|'.join(MODULES)}]",
        help="What proposes kernels; by default openai with a key, else tune.",
    ),
]
Model = Annotated[str | None, typer.Option(help="The model that is asked.")]
Price = Annotated[
    str | None,
    typer.Option(
        metavar="USD/USD",
        help="A million prompt and completion tokens of the model, e.g. 2/8; known for OpenAI's.",
    ),
]
CostCap = Annotated[
    float | None,
    typer.Option(
        min=0,
        callback=_amount,
        metavar="USD",
        help=(
            "Ask nothing that could bring the cost above this; an endpoint that ignores"
            " --max-tokens can still pass it."
        ),
    ),
]
Temperature = Annotated[
    float | None,
    typer.Option(min=0, max=2, help="The model's temperature; the endpoint's own by default."),
]
MaxTokens = Annotated[
    int | None, typer.Option(min=1, help="The most tokens that a reply may have; 16384 by default.")
]
Timeout = Annotated[
    float | None,
    typer.Option(
        parser=_time, metavar="TIME", help="How long one reply may take, e.g. 300s; 5m by default."
    ),
]
Retries = Annotated[
    int | None,
    typer.Option(
        min=0,
        help=(
            "How often a request is sent again that fails while others are answered; 6 by default."
        ),
    ),
]
Patience = Annotated[
    float | None,
    typer.Option(
        parser=_time,
        metavar="TIME",
        help="How long the endpoint may answer nothing at all; 30m by default.",
    ),
]
TimeLimit = Annotated[
    float | None,
    typer.Option(parser=_time, metavar="TIME", help="Stop after so long, e.g. 2h; resumable."),
]
Quiet = Annotated[
    bool,
    typer.Option("--quiet", "-q", help="No line for each trial: notes, errors and the result."),
]
ReplayFrom = Annotated[
    str | None, typer.Option(metavar="RUN", help="The run whose stored replies answer.")
]
