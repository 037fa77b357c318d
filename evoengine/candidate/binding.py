"""Binds a candidate's launch plan to one case: evaluates its expressions.

The result is all that a device worker needs: buffers, macros, and launches with integer extents.
It is sent to the worker as JSON.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator

from evoengine.candidate.arch import MAX_BLOCK, MAX_GRID, MAX_THREADS_PER_BLOCK, DeviceLimits
from evoengine.candidate.header import LaunchSpec, TypedArgument
from evoengine.candidate.kernel_file import Candidate
from evoengine.digest import digest_json
from evoengine.errors import CandidateError, hint
from evoengine.records import Frozen
from evoengine.task import expression
from evoengine.task.expression import ExpressionError, Value
from evoengine.task.initial_value import element_bytes
from evoengine.task.names import MAX_NAME_EXPRESSION
from evoengine.task.schema import Task, shape_of

ITEM_BYTES = {
    "float16": 2,
    "bfloat16": 2,
    "float32": 4,
    "float64": 8,
    "int8": 1,
    "uint8": 1,
    "int32": 4,
    "int64": 8,
    "bool": 1,
}

# The types that a template argument may name without a declaration in the code.
# fmt: off
TYPES = frozenset({
    "bool", "char", "short", "int", "unsigned", "long", "float", "double", "size_t",
    *(f"{sign}int{bits}_t" for sign in ("", "u") for bits in (8, 16, 32, 64)),
    *(f"{base}{count}" for base in ("float", "double", "int", "uint") for count in (2, 3, 4)),
    "half", "half2", "__half", "__half2", "nv_bfloat16", "nv_bfloat162",
    "__nv_bfloat16", "__nv_bfloat162", "__nv_fp8_e4m3", "__nv_fp8_e5m2",
})
# fmt: on

_IN_HIDDEN = "in a hidden case; make it work for every size that the reference takes"
_REFUSED_IN_HIDDEN = (
    f"a requirement does not hold, or the launch plan cannot be evaluated, {_IN_HIDDEN}"
)
NO_EXTENT = "must be an integer >= 1"  # how an error says that an extent is none


class OverLimits(CandidateError):  # noqa: N818 - named like its status
    """The plan asks for more than the device allows."""


class BufferArgument(Frozen):
    """A device pointer as an argument: an input, an output or a scratch buffer."""

    buffer: str


class ScalarArgument(Frozen):
    """A number as an argument."""

    scalar: int | float
    dtype: str


class BoundLaunch(Frozen):
    """One launch with all expressions evaluated."""

    kernel: str  # the name expression, e.g. sdpa<64, false>
    grid: tuple[int, ...]
    block: tuple[int, ...]
    shared_bytes: int
    args: tuple[BufferArgument | ScalarArgument, ...]


class ScratchBuffer(Frozen):
    """One scratch buffer with its extents."""

    dtype: str
    shape: tuple[int, ...]


class Fill(Frozen):
    """What a buffer is filled with before the launches of each call, as a part of its time.

    `element` are the bytes of one element, in hexadecimal; empty where the buffer is a copy of the
    input `source`.
    """

    buffer: str
    bytes: int
    element: str = ""
    source: str = ""


class CasePlan(Frozen):
    """A candidate's plan for one case."""

    case: str
    hidden: bool
    macros: dict[str, str]
    scratch: dict[str, ScratchBuffer]
    launches: tuple[BoundLaunch, ...]
    fills: tuple[Fill, ...] = ()

    @property
    def specialisation(self) -> str:
        """A digest of the machine code that this case needs; cases may share it."""
        return digest_json([self.macros, sorted({launch.kernel for launch in self.launches})])


def bind(candidate: Candidate, task: Task, case: str, limits: DeviceLimits) -> CasePlan:
    """The plan of `candidate` for `case` on a device with `limits`.

    Raises CandidateError if an expression fails or a requirement does not hold, and
    OverLimits if the plan asks for more than the device allows. Generators read both, so those of
    a hidden case name no formula, line or number: each could stand for a size.
    """
    if case not in task.hidden_cases:
        return _Binding(candidate, task, case, limits).plan()
    try:
        return _Binding(candidate, task, case, limits).plan()
    except OverLimits:
        raise OverLimits(f"the launch plan asks for more than is allowed {_IN_HIDDEN}") from None
    except CandidateError:
        raise CandidateError(_REFUSED_IN_HIDDEN) from None


def plan_is_refused(reason: str) -> bool:
    """Whether this is what `bind` says of a plan that it cannot build for a hidden case."""
    return reason == _REFUSED_IN_HIDDEN


def configurations(
    candidate: Candidate, task: Task, limits: DeviceLimits
) -> Iterator[dict[str, int]]:
    """All choices of tunables that keep requirements and limits in every case that is not hidden,
    in the header's order.
    """
    names = list(candidate.plan.tunables)
    for values in itertools.product(*candidate.plan.tunables.values()):
        chosen = dict(zip(names, values, strict=True))
        if is_valid(candidate.tuned(chosen), task, limits):
            yield chosen


def is_valid(candidate: Candidate, task: Task, limits: DeviceLimits) -> bool:
    """Whether the plan binds for every case that is not hidden.

    Tuners ask this of any number of values without a trial: with hidden cases, the value that is
    left would be the size that a requirement asks for.
    """
    try:
        for case in task.cases:
            bind(candidate, task, case, limits)
    except CandidateError:
        return False
    return True


class _Binding:
    """Binds one candidate to one case."""

    def __init__(self, candidate: Candidate, task: Task, case: str, limits: DeviceLimits) -> None:
        self.candidate = candidate
        self.task = task
        self.case = case
        self.where = f"in case {case}"
        self.limits = limits
        self.buffers = self._buffers()
        self.scope: dict[str, Value] = {**limits.scope(), **task.scope(case)}
        self._fill_scope()

    def plan(self) -> CasePlan:
        spec = self.candidate.plan
        for index, formula in enumerate(spec.require):
            if not self._value(("require", index), formula):
                raise CandidateError(
                    self._at(
                        ("require", index), f"requirement {formula!r} does not hold {self.where}"
                    )
                )
        macros = {name: _cpp_literal(value) for name, value in self.candidate.tunables.items()}
        macros |= {
            name: _cpp_literal(self._value(("constants", name), formula))
            for name, formula in spec.constants.items()
        }
        scratch = self._scratch()
        return CasePlan(
            case=self.case,
            hidden=self.case in self.task.hidden_cases,
            macros=macros,
            scratch=scratch,
            fills=tuple(self._fills(scratch)),
            launches=tuple(
                self._launch(index, launch) for index, launch in enumerate(spec.launches)
            ),
        )

    def _buffers(self) -> set[str]:
        tensors = {name for name, spec in self.task.inputs.items() if spec.shape is not None}
        names = tensors | set(self.task.outputs)  # one in place is in both
        for name in self.candidate.plan.scratch:
            if name in names:
                raise CandidateError(
                    self._at(
                        ("scratch", name),
                        f"scratch {name!r} has the same name as a tensor of the task",
                    )
                )
        return names | set(self.candidate.plan.scratch)

    def _fill_scope(self) -> None:
        for name, spec in self.task.inputs.items():
            if spec.value is not None:
                self.scope[name] = expression.parse(spec.value).evaluate(self.scope)
        for name, value in self.candidate.tunables.items():
            self._define(("tunables", name), name, value)
        for name, formula in self.candidate.plan.let.items():
            self._define(("let", name), name, self._value(("let", name), formula))

    def _define(self, path: tuple[str | int, ...], name: str, value: Value) -> None:
        if name in self.scope or name in self.buffers:
            raise CandidateError(
                self._at(path, f"{name!r} is already a name of the task or the device")
            )
        self.scope[name] = value

    def _scratch(self) -> dict[str, ScratchBuffer]:
        result, total = {}, 0
        for name, spec in self.candidate.plan.scratch.items():
            shape = tuple(
                self._integer(("scratch", name), formula, "an extent of scratch")
                for formula in spec.shape
            )
            total += math.prod(shape) * ITEM_BYTES[spec.dtype]
            if total > self.task.limits.scratch:
                asks = f"scratch takes {total} bytes {self.where}"
                raise OverLimits(
                    self._at(
                        ("scratch", name), f"{asks}, the task allows {self.task.limits.scratch}"
                    )
                )
            result[name] = ScratchBuffer(dtype=spec.dtype, shape=shape)
        return result

    def _fills(self, scratch: dict[str, ScratchBuffer]) -> Iterator[Fill]:
        """Those of outputs, which the task asks for, and of scratch, which the plan does."""
        scope = self.task.scope(self.case)
        for name, spec in self.task.outputs.items():
            yield from _fill(name, spec.init, spec.dtype, shape_of(spec.shape, scope))
        for name, buffer in scratch.items():
            init = self.candidate.plan.scratch[name].init
            yield from _fill(name, init, buffer.dtype, buffer.shape)

    def _launch(self, index: int, spec: LaunchSpec) -> BoundLaunch:
        path = ("launches", index)
        launch = BoundLaunch(
            kernel=self._kernel(path, spec),
            grid=tuple(
                self._integer((*path, "grid"), formula, "a grid extent") for formula in spec.grid
            ),
            block=tuple(
                self._integer((*path, "block"), formula, "a block extent") for formula in spec.block
            ),
            shared_bytes=self._integer((*path, "shared"), spec.shared, "shared", smallest=0),
            args=tuple(
                self._argument((*path, "args", position), argument)
                for position, argument in enumerate(spec.args)
            ),
        )
        self._check_limits(path, launch)
        return launch

    def _check_limits(self, path: tuple[str | int, ...], launch: BoundLaunch) -> None:
        threads = math.prod(launch.block)
        where = self.where
        if threads > MAX_THREADS_PER_BLOCK:
            asks = f"block {launch.block} has {threads} threads {where}"
            raise OverLimits(
                self._at((*path, "block"), f"{asks}, devices allow {MAX_THREADS_PER_BLOCK}")
            )
        if any(extent > most for extent, most in zip(launch.block, MAX_BLOCK, strict=False)):
            raise OverLimits(
                self._at(
                    (*path, "block"),
                    f"block {launch.block} is beyond {MAX_BLOCK} {where}",
                )
            )
        if any(extent > most for extent, most in zip(launch.grid, MAX_GRID, strict=False)):
            raise OverLimits(
                self._at((*path, "grid"), f"grid {launch.grid} is beyond {MAX_GRID} {where}")
            )
        if launch.shared_bytes > self.limits.max_shared_bytes:
            asks = f"asks for {launch.shared_bytes} bytes of shared memory {where}"
            allows = f"{self.limits.arch} allows {self.limits.max_shared_bytes} per block"
            raise OverLimits(self._at((*path, "shared"), f"{asks}, {allows}"))

    def _kernel(self, path: tuple[str | int, ...], spec: LaunchSpec) -> str:
        arguments = [
            argument
            if self._is_type(argument)
            else _cpp_literal(self._value((*path, "kernel"), argument))
            for argument in spec.template_arguments
        ]
        # a template whose arguments all have defaults still needs the brackets
        name = f"{spec.function}<{', '.join(arguments)}>" if "<" in spec.kernel else spec.function
        if len(name) > MAX_NAME_EXPRESSION:
            asks = f"has {len(name)} characters with its template arguments {self.where}"
            raise CandidateError(
                self._at(
                    (*path, "kernel"),
                    f"the kernel's name {asks}, expected at most {MAX_NAME_EXPRESSION}",
                )
            )
        return name

    def _is_type(self, argument: str) -> bool:
        """Whether a template argument is a type: a common one, or one that the code declares."""
        if not argument.isidentifier() or argument in self.scope:
            return False
        return argument in TYPES or bool(
            re.search(rf"\b(?:struct|class|union|enum|using)\s+{argument}\b", self.candidate.code)
        )

    def _argument(
        self, path: tuple[str | int, ...], argument: str | TypedArgument
    ) -> BufferArgument | ScalarArgument:
        if isinstance(argument, TypedArgument):
            value = self._value(path, argument.value)
            if not argument.dtype.startswith(("float", "bfloat")) and value != int(value):
                asked = f"{argument.value!r} is {value} {self.where}"
                raise CandidateError(
                    self._at(
                        path, f"an argument of type {argument.dtype} must be an integer, {asked}"
                    )
                )
            return ScalarArgument(scalar=value, dtype=argument.dtype)
        if argument in self.buffers:
            return BufferArgument(buffer=argument)
        if argument.isidentifier() and expression.parse(argument).names - self.scope.keys():
            self._refuse_unknown(path, argument)
        given = self.task.inputs.get(argument)
        value = self._value(path, argument)
        dtype = given.dtype if given else "float32" if isinstance(value, float) else "int64"
        return ScalarArgument(scalar=value, dtype=dtype)

    def _refuse_unknown(self, path: tuple[str | int, ...], name: str) -> None:
        known = [*sorted(self.buffers), *self.scope]
        raise CandidateError(self._at(path, f"unknown name {name!r}{hint(name, known)}"))

    def _integer(
        self, path: tuple[str | int, ...], formula: str, what: str, smallest: int = 1
    ) -> int:
        value = self._value(path, formula)
        if value != int(value) or value < smallest:
            raise CandidateError(
                self._at(
                    path,
                    f"{what} must be an integer >= {smallest}, {formula!r} is {value} {self.where}",
                )
            )
        return int(value)

    def _value(self, path: tuple[str | int, ...], formula: str) -> Value:
        try:
            return expression.parse(formula).evaluate(self.scope)
        except ExpressionError as error:
            raise CandidateError(self._at(path, f"{error} ({self.where})")) from None

    def _at(self, path: tuple[str | int, ...], message: str) -> str:
        return f"{self.candidate.header.at(path)}: {message}"


def _fill(
    buffer: str, init: float | str | None, dtype: str, shape: tuple[int, ...]
) -> Iterator[Fill]:
    size = math.prod(shape) * ITEM_BYTES[dtype]
    if isinstance(init, str):
        yield Fill(buffer=buffer, bytes=size, source=init)
    elif init is not None:
        yield Fill(buffer=buffer, bytes=size, element=element_bytes(init, dtype).hex())


def _cpp_literal(value: Value) -> str:
    """The C++ literal of `value`."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return repr(value)
