"""What never changes within a run of what a prompt says: task, device, format, as templates get it.

No template is given the hidden cases.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from evoengine.candidate.arch import MAX_REGISTERS_PER_THREAD, limits_of
from evoengine.candidate.moved_bytes import bytes_of
from evoengine.emulator.targets import LAUNCH_US
from evoengine.emulator.timing_model import combination
from evoengine.errors import TaskError
from evoengine.generate import device_figures, reference_source
from evoengine.generate.operators import is_plateau
from evoengine.generate.reference_source import EXPONENTIALS, PRODUCTS
from evoengine.generate.reply_text import MAX_THOUGHTS
from evoengine.protocols import Request
from evoengine.task.distributions import DISTRIBUTIONS, EXPONENTIAL_ADVICE
from evoengine.task.domain import Domain, values_in_words
from evoengine.task.draw import draw_words
from evoengine.task.expression import FUNCTIONS
from evoengine.task.schema import Task

MAX_REFERENCE = 12_000  # characters; the longest packaged reference has 3,000
MAX_SUMMARY = 200  # characters of a docstring's first line
_HALF = ("float16", "bfloat16")
_FP8_TYPES = ("e4m3", "e5m2")


def facts(task_path: Path, request: Request, tier: str) -> dict[str, Any]:
    """The values for templates; the reference is read from the folder of `task_path`. Raises
    TaskError where it cannot be.
    """
    task, environment = request.task, request.environment
    text = _read(task_path, task.reference)
    name = task.reference.rpartition(":")[2]
    operations = reference_source.operations_of(text, name)
    target = device_figures.target_of(environment)
    formats = _formats(task, tier)
    return {
        "task": task.model_copy(update={"hidden_cases": {}}),
        "tier": tier,
        "reference": reference_source.excerpt(text, name)[:MAX_REFERENCE],
        "reference_name": name,
        "trusted": _trusted(task_path, task, tier, text),
        "trusted_summary": _trusted_summary(task_path, task, tier, text),
        "operations": operations,
        "has_half": any(spec.dtype in _HALF for spec in task.inputs.values()),
        "distributions": _distributions(operations),
        "dims": _dims(task),
        "has_domains": any(isinstance(item, Domain) for item in task.dims.values()),
        "arguments": list(_arguments(task)),
        "draws": _draws(task),
        "cases": [_case(task, case) for case in task.cases],
        "device": environment,
        "device_name": device_figures.short_name(environment),
        "launch_us": target.launch_us if target else LAUNCH_US,
        "device_figures": device_figures.figures(target, operations, formats) if target else [],
        "registers": MAX_REGISTERS_PER_THREAD,
        "warps_per_sm": limits_of(environment).threads_per_sm // 32,
        "sm": _compute_capability(environment.arch),
        "uses_fp8": "fp8" in formats,
        "limits": limits_of(environment).scope(),
        "functions": list(FUNCTIONS),
        "combination": combination.IN_SHORT,
        "bounds": _bounds(task, operations),
        "max_thoughts": MAX_THOUGHTS,
        "tuning_trials": request.tuning_trials,
        # 0 before it is a plateau
        "trials_without_gain": request.trials_without_gain * is_plateau(request),
        "has_lessons": bool(request.lessons),
    }


def _distributions(operations: frozenset[str]) -> dict[str, str]:
    """The meaning of each, with what it asks of a kernel with these operations."""
    advice = EXPONENTIAL_ADVICE if EXPONENTIALS in operations else {}
    return {name: words + advice.get(name, "") for name, words in DISTRIBUTIONS.items()}


def _read(task_path: Path, function: str) -> str:
    path = task_path.parent / function.rpartition(":")[0]
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise TaskError(f"{path}: the reference cannot be read for a prompt: {error}") from None


def _trusted(task_path: Path, task: Task, tier: str, reference: str) -> str:
    """The source of the tier's trusted implementation, without what the reference shows; "" where
    it is a function without others, as a rule a call of torch.
    """
    function = task.tiers[tier].trusted
    if function is None or function == task.reference:
        return ""
    file, _, name = function.rpartition(":")
    own_file, _, own_name = task.reference.rpartition(":")
    shown = reference_source.names_defined(reference, own_name) if file == own_file else frozenset()
    if name in shown:
        return ""
    text = _read(task_path, function)
    if not reference_source.functions_used(text, name):
        return ""
    return reference_source.excerpt(text, name, shown or {""})[:MAX_REFERENCE]


def _trusted_summary(task_path: Path, task: Task, tier: str, reference: str) -> str:
    """What the tier's trusted implementation says of itself; "" where the reference shows it."""
    function = task.tiers[tier].trusted
    own_file, _, own_name = task.reference.rpartition(":")
    if function is None:
        return ""
    file, _, name = function.rpartition(":")
    if file == own_file and name in reference_source.names_defined(reference, own_name):
        return ""
    return reference_source.summary_of(_read(task_path, function), name)[:MAX_SUMMARY]


def _formats(task: Task, tier: str) -> tuple[str, ...]:
    """The formats of tensor instructions that fit the inputs, and those that the tier asks for."""
    dtypes = {spec.dtype for spec in task.inputs.values() if spec.shape is not None}
    fitting = {"float16": "f16", "bfloat16": "bf16", "float32": "tf32", "float64": "fp64"}
    found = [name for dtype, name in fitting.items() if dtype in dtypes]
    if dtypes & {"int8", "uint8"}:
        found.append("int8")
    own = task.tiers[tier]
    asked = (*own.uses, *([own.unit] if own.unit else []))
    if any(name == "fp8" or name in _FP8_TYPES for name in asked):
        found.append("fp8")
    return tuple(found)


def _bounds(task: Task, operations: frozenset[str]) -> dict[str, str]:
    """The bounds of modelled times that can matter for this task, with what each is."""
    dtypes = {spec.dtype for spec in task.inputs.values()}
    dtypes |= {spec.dtype for spec in task.outputs.values()}
    unneeded = set()
    if "float64" not in dtypes:
        unneeded.add("fp64")
    if PRODUCTS not in operations:
        unneeded.add("tensor")
    if not dtypes.intersection(_HALF):
        unneeded.add("half")
    return {name: words for name, words in combination.BOUNDS.items() if name not in unneeded}


def _dims(task: Task) -> list[str]:
    """One phrase for all dimensions and flags that take the same values."""
    groups: dict[str, list[str]] = {}
    for name, dimension in task.dims.items():
        groups.setdefault(values_in_words(dimension), []).append(name)
    return [f"{', '.join(names)}: {words}" for words, names in groups.items()]


def _arguments(task: Task) -> Iterator[str]:
    """One line for all tensors and scalars that are alike."""
    groups: dict[str, list[str]] = {}
    for name, spec in task.inputs.items():
        if name in task.outputs:
            continue
        what = (
            f"input {spec.dtype} [{', '.join(spec.shape)}]"
            if spec.shape is not None
            else f"scalar {spec.dtype}, {spec.value}"
        )
        groups.setdefault(what, []).append(name)
    for name, output in task.outputs.items():
        shape = f"{output.dtype} [{', '.join(output.shape)}]"
        if output.inout:
            what = f"input {shape}, to be changed in place into the output"
        elif output.init is not None:
            filled = f"a copy of {output.init}" if isinstance(output.init, str) else output.init
            what = f"output {shape}, begins with {filled}; filling it is timed"
        else:
            what = f"output {shape}, every element to be written"
        groups.setdefault(what, []).append(name)
    return (f"{', '.join(names)}: {what}" for what, names in groups.items())


def _draws(task: Task) -> dict[str, str]:
    """How inputs are drawn that have a way of their own."""
    return {
        name: draw_words(spec.draw, spec.dtype)
        for name, spec in task.inputs.items()
        if spec.draw is not None
    }


def _case(task: Task, name: str) -> dict[str, Any]:
    """One visible case: its values, and the bytes that must move at least once."""
    binding = ", ".join(
        f"{key}={str(value).lower() if isinstance(value, bool) else value}"
        for key, value in task.scope(name).items()
    )
    return {
        "name": name,
        "binding": binding,
        "traffic_bytes": sum(bytes_of(task, name)),
        "timed": name in task.objective.cases,
    }


def _compute_capability(arch: str) -> int:
    """89 for sm_89; 0 where it is not known."""
    digits = arch.removeprefix("sm_").rstrip("af")
    return int(digits) if digits.isdigit() else 0
