"""The header of a kernel file: its launch plan, as expressions over the task's dimensions."""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import (
    BeforeValidator,
    Discriminator,
    Field,
    Tag,
    ValidationError,
    field_validator,
    model_validator,
)

from evoengine.records import Frozen
from evoengine.task import expression, yaml_source
from evoengine.task.expression import ExpressionError
from evoengine.task.initial_value import InitialValue, element_bytes
from evoengine.task.names import CandidateName, Name
from evoengine.task.schema import Dtype, Shape
from evoengine.task.value_types import Formula
from evoengine.task.yaml_source import MisplacedError, YamlSource

MAX_CONFIGURATIONS = 1_000_000

# Possessive, except inside <>: with backtracking 30,000 spaces would take seconds.
_KERNEL = re.compile(r"\s*+([A-Za-z_][\w:]*+)\s*+(?:<(.*)>\s*+)?\Z", re.DOTALL | re.ASCII)


def _extents(value: Any) -> Any:
    """A list of extents; a single extent may be given without a list."""
    return [value] if isinstance(value, str | int) else value


TunableValue = Annotated[
    int, Field(strict=True, ge=-expression.MAX_MAGNITUDE, le=expression.MAX_MAGNITUDE)
]


class ScratchSpec(Frozen):
    """A device buffer shared by launches; filled with NaN patterns before every run of the plan, or
    with `init` in every element: filling it is then part of the time.
    """

    dtype: Dtype
    shape: Shape
    init: InitialValue | None = None

    @model_validator(mode="after")
    def _holds_init(self) -> ScratchSpec:
        if isinstance(self.init, str):
            raise MisplacedError(f"expected a number, inf or -inf, got {self.init!r}", "init")
        if self.init is not None:
            try:
                element_bytes(self.init, self.dtype)
            except ValueError as error:
                raise MisplacedError(str(error), "init") from None
        return self


class TypedArgument(Frozen):
    """A scalar argument with an explicit type: {value: expression, dtype: float64}."""

    value: Formula
    dtype: Dtype


def _kind(argument: Any) -> str:
    return "typed" if isinstance(argument, dict | TypedArgument) else "expression"


Argument = Annotated[
    Annotated[Formula, Tag("expression")] | Annotated[TypedArgument, Tag("typed")],
    Discriminator(_kind),
]


class LaunchSpec(Frozen):
    """One kernel launch, in expressions."""

    kernel: str
    grid: Annotated[
        tuple[Formula, ...], Field(min_length=1, max_length=3), BeforeValidator(_extents)
    ]
    block: Annotated[
        tuple[Formula, ...], Field(min_length=1, max_length=3), BeforeValidator(_extents)
    ]
    shared: Formula = "0"
    args: tuple[Argument, ...]

    @field_validator("kernel")
    @classmethod
    def _kernel(cls, value: str) -> str:
        match = _KERNEL.match(value)
        if not match:
            raise ValueError(
                "expected a kernel's name, with template arguments in <> where it has any"
            )
        for argument in split_arguments(match[2]):
            _check_expression(argument)
        return value

    @property
    def function(self) -> str:
        """The kernel's name without template arguments."""
        return _KERNEL.match(self.kernel)[1]  # type: ignore[index]  # checked on the way in

    @property
    def template_arguments(self) -> tuple[str, ...]:
        """The expressions between < and >."""
        return split_arguments(_KERNEL.match(self.kernel)[2])  # type: ignore[index]  # checked on the way in


class Plan(Frozen):
    """The header: the work of host code for this kernel."""

    name: CandidateName
    precision: str
    summary: str = ""
    tunables: dict[Name, Annotated[tuple[TunableValue, ...], Field(min_length=1)]] = {}
    let: dict[Name, Formula] = {}
    constants: dict[Name, Formula] = {}
    require: tuple[Formula, ...] = ()
    scratch: dict[Name, ScratchSpec] = {}
    launches: Annotated[tuple[LaunchSpec, ...], Field(min_length=1, max_length=16)]

    @field_validator("tunables", mode="after")
    @classmethod
    def _distinct(cls, value: dict[str, tuple[int, ...]]) -> dict[str, tuple[int, ...]]:
        for name, choices in value.items():
            if len(set(choices)) != len(choices):
                raise MisplacedError(f"{name}: a value appears twice in {list(choices)}", name)
        return value

    @model_validator(mode="after")
    def _unique_names(self) -> Plan:
        seen: dict[str, str] = {}
        for group in ("tunables", "let", "scratch"):
            for name in getattr(self, group):
                if name in seen:
                    raise MisplacedError(
                        f"{name!r} is in both {seen[name]} and {group}", group, name
                    )
                seen[name] = group
        for name in self.constants:
            if name in self.tunables:  # both are -D macros, and one of the two would win silently
                raise MisplacedError(
                    f"{name!r} is in both tunables and constants", "constants", name
                )
        return self


def _check_expression(text: str) -> None:
    try:
        expression.parse(text)
    except ExpressionError as error:
        raise ValueError(str(error)) from None


def split_arguments(text: str | None) -> tuple[str, ...]:
    """The parts of `text` between commas outside parentheses."""
    parts, depth, current = [], 0, ""
    for character in text or "":
        depth += (character == "(") - (character == ")")
        if character == "," and depth == 0:
            parts.append(current.strip())
            current = ""
        else:
            current += character
    return (*parts, current.strip()) if text else ()


def read_plan(header: YamlSource) -> Plan:
    """The plan in `header`; raises YamlError with the place of the first complaint."""
    _explain_bare_commas(header)
    try:
        plan = Plan.model_validate(header.data)
    except ValidationError as error:
        raise header.explain(error, Plan) from None
    configurations = 1
    for values in plan.tunables.values():
        configurations *= len(values)
    if configurations > MAX_CONFIGURATIONS:
        raise header.error(
            ("tunables",),
            f"expected at most {MAX_CONFIGURATIONS} configurations, got {configurations}",
        )
    return plan


def _explain_bare_commas(header: YamlSource) -> None:
    """Raises a helpful error for forgotten quotes: YAML reads [ceil_div(S, 64), B] as three items
    and {kernel: f<A, B>} as two keys.
    """
    launches = header.data.get("launches")
    for index, launch in enumerate(launches if isinstance(launches, list) else []):
        if not isinstance(launch, dict):
            continue
        name = launch.get("kernel")
        if (
            isinstance(name, str)
            and name.count("<")
            and not name.count(">")
            and any(str(key).endswith(">") for key in launch)
        ):
            raise header.error(
                ("launches", index, "kernel"),
                f"kernel: {yaml_source.shown(name)} is cut at a comma: YAML splits {{...}} at bare"
                ' commas, so quote the name, e.g. {kernel: "sdpa<D, causal>", ...}',
            )
        for key in ("grid", "block", "args"):
            items = launch.get(key)
            for position, item in enumerate(items if isinstance(items, list) else []):
                if isinstance(item, str) and item.count("(") > item.count(")"):
                    raise header.error(
                        ("launches", index, key, position),
                        f"{key}: {yaml_source.shown(item)} is cut at a comma: YAML splits a list at"
                        " bare commas, so quote the expression, "
                        f'e.g. {key}: ["ceil_div(S, BLOCK_M)", "B*H"]',
                    )
