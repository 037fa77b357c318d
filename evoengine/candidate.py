"""One self-contained .cu file: a launch plan in its first comment, device code below.

`parse` reads it. The header is data: YAML through a safe loader, expressions through a
whitelist. Every complaint names line and column, what was expected and what was found.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, ValidationError, field_validator, model_validator

from evoengine import expression, yaml_source
from evoengine.digest import digest, digest_json
from evoengine.errors import CandidateError
from evoengine.expression import ExpressionError
from evoengine.records import Frozen
from evoengine.task import Dtype, Name
from evoengine.yaml_source import YamlSource

MAX_SOURCE_BYTES = 256 * 1024  # a large hand-written kernel has 60 KiB
MAX_CONFIGURATIONS = 1_000_000

_HEADER = re.compile(r"\A\ufeff?\s*/\*[ \t]*evoengine[ \t]*\r?\n(.*?)\*/", re.DOTALL)
_KERNEL = re.compile(r"^\s*([A-Za-z_][\w:]*)\s*(?:<(.*)>)?\s*$", re.DOTALL)


def _formula(value: Any) -> Any:
    if isinstance(value, str | int | float):
        try:
            return expression.parse(value).text
        except ExpressionError as error:
            raise ValueError(str(error)) from None
    return value


def _extents(value: Any) -> Any:
    """One extent may stand without a list."""
    return [value] if isinstance(value, str | int) else value


Formula = Annotated[str, BeforeValidator(_formula)]


class Scratch(Frozen):
    """A device buffer between launches; poisoned before every run of the plan."""

    dtype: Dtype
    shape: Annotated[tuple[Formula, ...], Field(min_length=1, max_length=8)]


class ScalarArgument(Frozen):
    """A scalar argument whose type is said: {value: expression, dtype: float64}."""

    value: Formula
    dtype: Dtype


class LaunchSpec(Frozen):
    """One kernel launch, in expressions."""

    kernel: str
    grid: Annotated[tuple[Formula, ...], Field(min_length=1, max_length=3), BeforeValidator(_extents)]
    block: Annotated[tuple[Formula, ...], Field(min_length=1, max_length=3), BeforeValidator(_extents)]
    shared: Formula = "0"
    args: tuple[Formula | ScalarArgument, ...]

    @field_validator("kernel")
    @classmethod
    def _kernel(cls, value: str) -> str:
        match = _KERNEL.match(value)
        if not match:
            raise ValueError("expected a kernel's name, with template arguments in <> where it has any")
        for argument in split_arguments(match[2]):
            _formula(argument)
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
    """The header: what a host would do for this kernel."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9_.-]{1,80}$")]
    precision: str
    summary: str = ""
    tunables: dict[Name, Annotated[tuple[int, ...], Field(min_length=1)]] = {}
    let: dict[Name, Formula] = {}
    constants: dict[Name, Formula] = {}
    require: tuple[Formula, ...] = ()
    scratch: dict[Name, Scratch] = {}
    launches: Annotated[tuple[LaunchSpec, ...], Field(min_length=1, max_length=16)]

    @field_validator("tunables", mode="after")
    @classmethod
    def _distinct(cls, value: dict[str, tuple[int, ...]]) -> dict[str, tuple[int, ...]]:
        for name, choices in value.items():
            if len(set(choices)) != len(choices):
                raise ValueError(f"{name}: a value stands twice in {list(choices)}")
        return value

    @model_validator(mode="after")
    def _unique_names(self) -> Plan:
        groups = {"tunables": set(self.tunables), "let": set(self.let), "scratch": set(self.scratch)}
        seen: dict[str, str] = {}
        for group, names in groups.items():
            for name in names:
                if name in seen:
                    raise ValueError(f"{name!r} stands in {seen[name]} and in {group}")
                seen[name] = group
        return self


@dataclass(frozen=True)
class Candidate:
    """A parsed kernel file with its chosen tunables (defaults unless said otherwise)."""

    source: str
    plan: Plan
    tunables: dict[str, int]
    header: YamlSource

    def tuned(self, tunables: dict[str, int]) -> Candidate:
        """The same code with other values; raises CandidateError for a value that is not declared."""
        for name, value in tunables.items():
            if value not in self.plan.tunables.get(name, ()):
                declared = self.plan.tunables.get(name)
                known = f"one of {list(declared)}" if declared else f"a tunable among {', '.join(self.plan.tunables) or 'none'}"
                raise CandidateError(f"{self.header.at(('tunables', name))}: {name}={value}: expected {known}")
        return replace(self, tunables={**self.tunables, **tunables})

    @property
    def code(self) -> str:
        """The device code; the header is blanked, line numbers stay those of the file."""
        match = _HEADER.match(self.source)
        assert match
        return "\n" * self.source.count("\n", 0, match.end()) + self.source[match.end() :]

    @cached_property
    def source_digest(self) -> str:
        """The name of the file's text."""
        return digest(self.source)

    @cached_property
    def digest(self) -> str:
        """The name of code, plan and chosen values; comments outside the code do not count."""
        plan = self.plan.model_dump(mode="json", exclude={"name", "summary", "tunables"})
        return digest(self.code.strip(), digest_json(plan), digest_json(self.tunables))

    def with_defaults(self) -> str:
        """The file's text in which the chosen values stand first, so that it is what was measured."""
        pieces = [(self.header.marks[("tunables", name)], name) for name in self.plan.tunables]
        text = self.source
        offset = _HEADER.match(text).start(1)  # type: ignore[union-attr]  # parsed before
        for mark, name in sorted(pieces, key=lambda piece: -piece[0].start):
            chosen = self.tunables[name]
            if chosen != self.plan.tunables[name][0]:
                values = [chosen, *(value for value in self.plan.tunables[name] if value != chosen)]
                # a block sequence's mark ends on the next line: keep what follows on a line of its own
                tail = "\n" if text[offset + mark.end - 1 : offset + mark.end] == "\n" else ""
                text = text[: offset + mark.start] + str(values) + tail + text[offset + mark.end :]
        return text


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


def parse(source: str, name: str = "kernel.cu") -> Candidate:
    """The candidate in `source`; raises CandidateError with `name`:line:column."""
    if len(source.encode("utf-8", "replace")) > MAX_SOURCE_BYTES:
        raise CandidateError(f"{name}: expected at most {MAX_SOURCE_BYTES} bytes, got {len(source.encode())}")
    if "\0" in source:
        raise CandidateError(f"{name}: holds a NUL character")
    match = _HEADER.match(source)
    if not match:
        raise CandidateError(f"{name}:1:1: expected the launch plan first: a comment that begins with '/* evoengine' on a line of its own")
    try:
        header = yaml_source.load(match[1], name, first_line=source.count("\n", 0, match.start(1)) + 1)
        if not isinstance(header.data, dict):
            raise header.error((), f"expected keys such as name, precision, launches; got {type(header.data).__name__}")
        plan = _plan(header)
    except yaml_source.YamlError as error:
        raise CandidateError(str(error)) from None
    defaults = {tunable: values[0] for tunable, values in plan.tunables.items()}
    return Candidate(source, plan, defaults, header)


def _plan(header: YamlSource) -> Plan:
    _explain_bare_commas(header)
    try:
        plan = Plan.model_validate(header.data)
    except ValidationError as error:
        raise header.explain(error) from None
    configurations = 1
    for values in plan.tunables.values():
        configurations *= len(values)
    if configurations > MAX_CONFIGURATIONS:
        raise header.error(("tunables",), f"expected at most {MAX_CONFIGURATIONS} configurations, got {configurations}")
    return plan


def _explain_bare_commas(header: YamlSource) -> None:
    """A forgotten quote is explained: [ceil_div(S, 64), B] reaches us as three items."""
    launches = header.data.get("launches")
    for index, launch in enumerate(launches if isinstance(launches, list) else []):
        for key in ("grid", "block", "args"):
            items = launch.get(key) if isinstance(launch, dict) else None
            for position, item in enumerate(items if isinstance(items, list) else []):
                if isinstance(item, str) and item.count("(") > item.count(")"):
                    raise header.error(
                        ("launches", index, key, position),
                        f"{key}: {item!r} is cut at a comma: YAML splits a list at bare commas, so quote the expression, "
                        f'e.g. {key}: ["ceil_div(S, BLOCK_M)", "B*H"]',
                    )
