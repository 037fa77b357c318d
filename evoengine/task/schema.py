"""What a task file may hold: what to speed up, and what counts as correct."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal, get_args

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from evoengine.errors import hint
from evoengine.records import Frozen
from evoengine.task import expression
from evoengine.task.distributions import DEFAULT_DISTRIBUTIONS, Distribution
from evoengine.task.domain import Dimension, allows, values_in_words
from evoengine.task.draw import GIVEN_TO_DRAWS, Draw, InputDraw
from evoengine.task.drawn_ranges import refuse_range
from evoengine.task.expression import ExpressionError, Value
from evoengine.task.initial_value import InitialValue, element_bytes
from evoengine.task.instruction_formats import known_format
from evoengine.task.names import Name, TaskName
from evoengine.task.small_cases import sizes_of
from evoengine.task.value_types import Formula, FunctionRef
from evoengine.task.yaml_source import MisplacedError, misplaced_under

UNITS = {"B": 1, "KiB": 1024, "MiB": 1024**2, "GiB": 1024**3}


def adds_up_to_1(shares: Iterable[float]) -> bool:
    """Whether shares as people write them, such as three of 0.333, are the whole."""
    return abs(sum(shares) - 1) < 0.01


def _bytes(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    match = re.fullmatch(r"([0-9]{1,18})\s*(B|KiB|MiB|GiB)", value)
    if not match:
        raise ValueError("expected a number of bytes such as 4096, 99KiB, 2 MiB or 1 GiB")
    return int(match[1]) * UNITS[match[2]]


def _arch(value: str) -> str:
    if not re.fullmatch(r"sm_[0-9]+a?", value):
        raise ValueError("expected an architecture such as sm_89 or sm_90a")
    return value


Bytes = Annotated[int, BeforeValidator(_bytes), Field(ge=0)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
NotNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Factor = Annotated[float, Field(ge=1, allow_inf_nan=False)]
Share = Annotated[float, Field(gt=0, le=1, allow_inf_nan=False)]
Dtype = Literal[
    "float16", "bfloat16", "float32", "float64", "int8", "uint8", "int32", "int64", "bool"
]
InstructionFormat = Annotated[str, AfterValidator(known_format)]
# What does the arithmetic: tensor cores by the format that they multiply (fp8: e4m3 and e5m2), and
# the other cores in single precision.
ArithmeticUnit = Literal["f16", "bf16", "tf32", "fp8", "int8", "fp64", "fp32"]
DTYPES: tuple[str, ...] = get_args(Dtype)
# no extents: a tensor of one element and no dimensions
Shape = Annotated[tuple[Formula, ...], Field(max_length=8)]
Case = dict[Name, int | bool]


class Input(Frozen):
    """A tensor (shape, dtype) or a scalar (value, dtype)."""

    dtype: Dtype
    shape: Shape | None = None
    value: Formula | None = None
    draw: InputDraw | None = None  # None: from the distribution of the input set

    @model_validator(mode="after")
    def _one_of(self) -> Input:
        if (self.shape is None) == (self.value is None):
            raise ValueError("expected either shape (a tensor) or value (a scalar)")
        if self.draw is not None and self.shape is None:
            raise MisplacedError("a scalar has a value and is not drawn", "draw")
        if isinstance(self.draw, Draw):
            with misplaced_under("draw"):
                self.draw.refuse_misfit(self.dtype, len(self.shape or ()))
        return self


class Output(Frozen):
    """A tensor that the candidate writes in full, or changes in place.

    `init` is what it holds before each call; filling it is part of the time. With `inout`, it is
    the input of the same name, which the candidate changes; its contents are the caller's.
    """

    dtype: Dtype
    shape: Shape
    init: InitialValue | None = None
    inout: bool = False

    @model_validator(mode="after")
    def _one_beginning(self) -> Output:
        if self.inout and self.init is not None:
            raise ValueError("expected inout or init, not both")
        return self


class Tolerances(Frozen):
    """How far one output may be from the reference.

    An element fails when |out - ref| > atol + rtol * |ref|, where atol is raised to
    `trusted_factor` times the largest error of the trusted implementation in this output on the
    same inputs; the whole output fails when its relative RMSE exceeds the larger of
    `rel_rmse` and the same factor times the trusted one's. The same holds for every slice,
    with a limit four times as large (evaluate/worker/slices.py).
    """

    atol: NotNegative
    rtol: NotNegative = 0.0
    rel_rmse: Positive
    trusted_factor: Factor = 2.0


class OutputTolerances(Frozen):
    """The tolerances in which one output differs from its tier."""

    atol: NotNegative | None = None
    rtol: NotNegative | None = None
    rel_rmse: Positive | None = None
    trusted_factor: Factor | None = None

    @model_validator(mode="after")
    def _states_one(self) -> OutputTolerances:
        if not self.model_fields_set:
            raise ValueError(f"expected at least one of {', '.join(Tolerances.model_fields)}")
        return self


class Tier(Tolerances):
    """The gate of one precision tier: the tolerances of every output, but for those that differ."""

    trusted: FunctionRef | None = None
    outputs: dict[Name, OutputTolerances] = {}
    # formats whose instructions the machine code must contain; see task/instruction_formats.py
    uses: tuple[InstructionFormat, ...] = ()
    # in place of the work's, if this tier allows a faster one
    unit: ArithmeticUnit | None = None

    def tolerances(self, output: str) -> Tolerances:
        """The tolerances of one output: its own, and the tier's where it has none."""
        whole = {key: getattr(self, key) for key in Tolerances.model_fields}
        own = self.outputs[output].model_dump(exclude_none=True) if output in self.outputs else {}
        return Tolerances(**{**whole, **own})


class Work(Frozen):
    """What one call must do at least, whatever the kernel: times below that are refused.

    `flops` must be true of every right kernel: leave out what can be skipped or saved.
    """

    flops: Formula | None = None
    unit: ArithmeticUnit | None = None  # the fastest that is exact enough for every tier
    # In place of all bytes, but for those of tensors that are changed in place: nobody knows how
    # much of them a call must read and write.
    input_bytes: Formula | None = None
    output_bytes: Formula | None = None

    @model_validator(mode="after")
    def _of_a_unit(self) -> Work:
        if (self.flops is None) != (self.unit is None):
            raise ValueError("expected both flops and unit, or neither")
        return self


WORK_FORMULAS = {"flops", "input_bytes", "output_bytes"}


class Objective(Frozen):
    """The score of candidates: the geometric mean of time ratios over `cases`."""

    cases: Annotated[tuple[str, ...], Field(min_length=1)]
    aggregate: Literal["geomean"] = "geomean"
    cache: Literal["hot", "cold"] = "hot"


class Target(Frozen):
    """The device that the kernels are meant for; its limits are reported for every candidate."""

    arch: Annotated[str, AfterValidator(_arch)]
    registers: Annotated[int, Field(gt=0)] | None = None
    shared: Bytes | None = None


class Budget(Frozen):
    """When a run ends: after `trials` trials, including the starting kernels."""

    trials: Annotated[int, Field(gt=0)]
    cost_usd: NotNegative | None = None
    tiers: dict[Name, Share] = {}  # tier -> its share of the trials; empty: all are searched


class Limits(Frozen):
    """The limits of one candidate, and of one call of the task's own functions."""

    compile_s: Positive = 30.0
    compile_memory: Bytes = 4 * 1024**3
    launch_s: Positive = 10.0  # longest time without a message from the worker while it checks
    evaluate_s: Positive = 120.0
    # The same two for the emulator, which runs a scalar kernel a thousand times slower than a GPU:
    # the slowest packaged kernel takes 10 s per launch on two cores. A kernel with an endless loop
    # reaches `emulator_rounds` before that.
    emulator_launch_s: Positive = 300.0
    emulator_evaluate_s: Positive = 1800.0
    # Loop iterations that the warps of a launch may execute on the emulator, per element of the
    # case's inputs and outputs: 50 times what the packaged scalar attention needs at most. So an
    # endless loop ends after seconds, and the verdict names its line.
    emulator_rounds: Positive = 150.0
    # One call of a function that the task names: reference, trusted implementation, baseline.
    # Beyond it the run ends and names the function; an endless one would block the run for ever.
    # The packaged references take up to 10 s per call on two cores (AMD EPYC), a baseline that
    # torch tunes for a GPU up to minutes.
    reference_s: Positive = 300.0
    timing_ms: Positive = 60.0  # measuring time per case, each of hot and cold
    scratch: Bytes = 2 * 1024**3


class Task(Frozen):
    """A checked task; `reference`, `trusted` and baselines name functions in Python files beside
    the task file.
    """

    name: TaskName
    summary: str = ""
    reference: FunctionRef
    dims: dict[Name, Dimension]
    inputs: dict[Name, Input]
    outputs: dict[Name, Output]
    distributions: tuple[Distribution, ...] = DEFAULT_DISTRIBUTIONS
    cases: dict[Name, Case]
    hidden_cases: dict[Name, Case] = {}
    seeds: tuple[int, ...] = (0, 1, 2)
    tiers: dict[Name, Tier]
    objective: Objective
    baselines: dict[str, FunctionRef]
    target: Target | None = None
    work: Work | None = None
    seeds_from: tuple[str, ...] = ()
    budget: Budget
    limits: Limits = Limits()

    @property
    def all_cases(self) -> dict[str, Case]:
        """The cases shown to generators, then the hidden ones."""
        return {**self.cases, **self.hidden_cases}

    @property
    def drawing_functions(self) -> dict[str, str]:
        """The inputs that functions of the task draw: name -> FILE.py:FUNCTION."""
        return {name: spec.draw for name, spec in self.inputs.items() if isinstance(spec.draw, str)}

    @property
    def functions(self) -> dict[tuple[str, ...], str]:
        """Every FILE.py:FUNCTION of the task by its place in the task file."""
        return {
            ("reference",): self.reference,
            **{("baselines", key): name for key, name in self.baselines.items()},
            **{
                ("tiers", key, "trusted"): tier.trusted
                for key, tier in self.tiers.items()
                if tier.trusted
            },
            **{("inputs", key, "draw"): name for key, name in self.drawing_functions.items()},
        }

    def scope(self, case: str) -> dict[str, Value]:
        """The names that an expression may use for `case`: its dimensions and flags. The case may
        be a small one of task/small_cases.py.
        """
        known = self.all_cases
        return dict(known[case] if case in known else sizes_of(self, case))

    def allows_case(self, sizes: Case) -> bool:
        """Whether `sizes` could be a case of this task."""
        # a name that no file has
        changed = self.model_copy(update={"cases": {**self.cases, "": sizes}})
        try:
            changed._check_case("cases", "", sizes)
        except MisplacedError:
            return False
        return True

    def most_elements(self, sizes: Mapping[str, Value]) -> int:
        """The elements of the largest tensor of a case."""
        shapes = [spec.shape for specs in (self.inputs, self.outputs) for spec in specs.values()]
        return max(math.prod(shape_of(it, dict(sizes))) for it in shapes if it is not None)

    @model_validator(mode="after")
    def _consistent(self) -> Task:
        different = len(set(self.seeds))
        _require(
            different == len(self.seeds) >= 3,
            f"seeds: expected at least 3 different ones, got {list(self.seeds)}",
            "seeds",
        )
        for key in ("distributions", "cases", "outputs", "tiers", "baselines"):
            _require(bool(getattr(self, key)), f"{key}: expected at least one", key)
        for name in sorted(set(self.cases) & set(self.hidden_cases)):
            raise MisplacedError(
                f"{name!r} is the name of both a case and a hidden case", "hidden_cases", name
            )
        for position, name in enumerate(self.objective.cases):
            place = ("objective", "cases", position)
            _require(
                name in self.cases,
                f"objective.cases: no case {name!r}{hint(name, self.cases)}",
                *place,
            )
        self._check_names()
        self._check_tiers()
        for group, cases in (("cases", self.cases), ("hidden_cases", self.hidden_cases)):
            for name, case in cases.items():
                self._check_case(group, name, case)
        self._check_work()
        self._check_drawing_functions()
        return self

    def _check_drawing_functions(self) -> None:
        taken = {*self.dims, *(name for name, spec in self.inputs.items() if spec.value)}
        for name, function in self.drawing_functions.items():
            for clash in sorted(taken.intersection(GIVEN_TO_DRAWS)):
                wanted = (
                    f"{clash!r} cannot be the name of a dimension or scalar where {function} draws"
                    f" {name}: it is given {', '.join(GIVEN_TO_DRAWS)}"
                )
                raise MisplacedError(wanted, "inputs", name, "draw")

    def _check_work(self) -> None:
        formulas = {} if self.work is None else self.work.model_dump(include=WORK_FORMULAS)
        for key, formula in formulas.items():
            for case in self.all_cases if formula is not None else ():
                amount = self._value(case, formula, "work", key)
                wanted = f"{key}: {formula} is {amount} for case {case}, expected a positive number"
                _require(amount > 0, wanted, "work", key)

    def _check_names(self) -> None:
        seen: dict[str, str] = {}
        for group in ("dims", "inputs", "outputs"):
            for name in getattr(self, group):
                spec = self.outputs.get(name)
                if group == "outputs" and spec is not None and spec.inout:
                    self._check_inout(name, spec)
                    continue
                _require(
                    name not in seen,
                    f"{name!r} is in both {seen.get(name)} and {group}"
                    + ("; an output that changes it in place has inout: true" if spec else ""),
                    group,
                    name,
                )
                seen[name] = group
        for name, spec in self.outputs.items():
            self._check_init(name, spec)

    def _check_inout(self, name: str, spec: Output) -> None:
        given = self.inputs.get(name)
        wanted = f"{name}: inout needs an input of the same name, shape and dtype"
        same = given is not None and (given.shape, given.dtype) == (spec.shape, spec.dtype)
        _require(same, wanted, "outputs", name, "inout")

    def _check_init(self, name: str, spec: Output) -> None:
        place = ("outputs", name, "init")
        if isinstance(spec.init, str):
            given = self.inputs.get(spec.init)
            tensors = [key for key, item in self.inputs.items() if item.shape is not None]
            known = (
                f"{name}: expected a number, inf, -inf or the name of an input tensor, got"
                f" {spec.init!r}{hint(spec.init, tensors)}"
            )
            _require(given is not None and given.shape is not None, known, *place)
            assert given is not None
            same = (given.shape, given.dtype) == (spec.shape, spec.dtype)
            wanted = f"{name}: {spec.init} has another shape or dtype, and cannot be copied into it"
            _require(same, wanted, *place)
        elif spec.init is not None:
            try:
                element_bytes(spec.init, spec.dtype)
            except ValueError as error:
                raise MisplacedError(f"{name}: {error}", *place) from None

    def _check_tiers(self) -> None:
        for tier in self.budget.tiers:
            wanted = f"budget.tiers: no tier {tier!r}{hint(tier, self.tiers)}"
            _require(tier in self.tiers, wanted, "budget", "tiers", tier)
        shares = self.budget.tiers.values()
        wanted = f"budget.tiers: the shares add up to {sum(shares):g}, expected 1"
        _require(not shares or adds_up_to_1(shares), wanted, "budget", "tiers")
        for tier, gate in self.tiers.items():
            for name in gate.outputs:
                wanted = f"tiers.{tier}.outputs: no output {name!r}{hint(name, self.outputs)}"
                _require(name in self.outputs, wanted, "tiers", tier, "outputs", name)

    def _check_case(self, group: str, name: str, case: Case) -> None:
        wanted = (
            f"case {name}: expected values for {', '.join(self.dims)}, got"
            f" {', '.join(case) or 'none'}"
        )
        _require(set(case) == set(self.dims), wanted, group, name)
        for dim, dimension in self.dims.items():
            wanted = f"case {name}: {dim} must be {values_in_words(dimension)}, got {case[dim]!r}"
            _require(allows(dimension, case[dim]), wanted, group, name, dim)
        for key, specs in (("inputs", self.inputs), ("outputs", self.outputs)):
            for buffer, spec in specs.items():
                self._check_extents(name, (key, buffer), spec)

    def _check_extents(self, case: str, place: tuple[str, str], spec: Input | Output) -> None:
        for position, formula in enumerate(spec.shape or ()):
            size = self._value(case, formula, *place, "shape", position)
            wanted = f"{place[1]}: {formula} is {size} for case {case}, expected a positive integer"
            _require(size == int(size) > 0, wanted, *place, "shape", position)
        if isinstance(spec, Input):
            self._check_input(case, place, spec)

    def _check_input(self, case: str, place: tuple[str, str], spec: Input) -> None:
        if spec.value is not None:
            self._value(case, spec.value, *place, "value")
        if isinstance(spec.draw, Draw) and spec.shape is not None:
            scope = self.scope(case)
            with misplaced_under(*place, "draw", around=(f"{place[1]}: ", f" for case {case}")):
                refuse_range(spec.draw, spec.dtype, shape_of(spec.shape, scope), scope)

    def _value(self, case: str, formula: str, *place: str | int) -> Value:
        try:
            return expression.parse(formula).evaluate(self.scope(case))
        except ExpressionError as error:
            raise MisplacedError(f"{place[1]}: {error} for case {case}", *place) from None


def _require(condition: bool, message: str, *path: str | int) -> None:
    if not condition:
        raise MisplacedError(message, *path)


def shape_of(shape: tuple[str, ...], scope: dict[str, Value]) -> tuple[int, ...]:
    """The values of the formulas in `shape`, with the names in `scope`."""
    return tuple(int(expression.parse(formula).evaluate(scope)) for formula in shape)
