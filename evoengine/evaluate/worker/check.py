"""The check of an input set: all elements of all outputs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import torch

from evoengine.candidate.binding import CasePlan
from evoengine.evaluate.worker.arena import Layout
from evoengine.evaluate.worker.expected_outputs import ExpectedOutput
from evoengine.evaluate.worker.gate import Errors, all_pass, compare, nearest_to_limit
from evoengine.evaluate.worker.inputs import Tensors
from evoengine.records import CaseCheck, InputSetCheck
from evoengine.task.schema import Input, Output, Task, shape_of


def layout_of(task: Task, plan: CasePlan, scratch: bool = True) -> Layout:
    """The dtype and shape of every buffer of a plan, by name; scratch buffers with `scratch`."""
    scope = task.scope(plan.case)
    tensors: dict[str, Input | Output] = {**task.inputs, **task.outputs}
    layout = {
        name: (getattr(torch, spec.dtype), shape_of(spec.shape, scope))
        for name, spec in tensors.items()
        if spec.shape is not None
    }
    return layout | {
        name: (getattr(torch, spec.dtype), spec.shape)
        for name, spec in plan.scratch.items()
        if scratch
    }


def written_by(task: Task, plan: CasePlan) -> list[str]:
    """The names of the buffers that a candidate writes: outputs and scratch."""
    return [*task.outputs, *plan.scratch]


def compare_outputs(
    outputs: Tensors, expected: ExpectedOutput, tier: str, distribution: str, number: int
) -> InputSetCheck:
    """The comparison of `outputs` with `expected` under the gate of `tier`.

    `number` is that of the input set within its case. `outputs` hold a tensor for each output of
    the task, of its shape and dtype, on the device of the references.
    """
    errors = compare(outputs, expected.reference, expected.gates[tier])
    return checked_set(expected, tier, errors, distribution, number)


def checked_set(
    expected: ExpectedOutput,
    tier: str,
    errors_by_output: Mapping[str, Errors],
    distribution: str,
    number: int,
) -> InputSetCheck:
    """The record of a comparison under the gates of `tier`: the figures are those of the output
    that fails most clearly, or that is nearest to a limit where all pass.
    """
    gates = expected.gates[tier]
    name = nearest_to_limit(errors_by_output, gates)
    errors, gate = errors_by_output[name], gates[name]
    trusted = expected.trusted.get(tier, {}).get(name)
    return InputSetCheck(
        distribution=distribution,
        seed=number,
        ok=all_pass(errors_by_output, gates),
        max_abs=errors.max_abs,
        rel_rmse=errors.rel_rmse,
        failing_share=errors.failing / errors.elements,
        worst_index=errors.worst_index,
        worst_output=name,
        limit_abs=gate.atol,
        limit_rel_rmse=gate.rel_rmse,
        trusted_max_abs=trusted.max_abs if trusted else 0.0,
        trusted_rel_rmse=trusted.rel_rmse if trusted else 0.0,
        nan_count=errors.nan_count,
        slice_rel_rmse=errors.slice_rel_rmse,
        worst_slice_output=name if errors.worst_slice else "",
        worst_slice=errors.worst_slice,
        limit_slice_rel_rmse=gate.rel_slice,
        share_of_limit=gate.share(errors),
    )


def worst_of_each(*groups: Iterable[InputSetCheck]) -> tuple[InputSetCheck, ...]:
    """The comparison of each input set that fails most clearly, or is nearest to a limit; by
    number.
    """
    worst: dict[int, InputSetCheck] = {}
    for check in (check for group in groups for check in group):
        known = worst.get(check.seed)
        if known is None or check.clearness > known.clearness:
            worst[check.seed] = check
    return tuple(worst[number] for number in sorted(worst))


def explain(check: CaseCheck) -> str:
    """One line on what is wrong with a case; of a hidden one, only that it is wrong."""
    if check.hidden:
        return "wrong in a hidden case"
    worst = check.worst
    failing = sum(not item.ok for item in check.sets)
    nan = f", {worst.nan_count} NaN" if worst.nan_count else ""
    output = f", output {worst.worst_output}" if worst.worst_output else ""
    place = f", worst at {worst.worst_place}" if worst.worst_index else ""
    row = _slice_problem(worst)
    return (
        f"case {check.case}: {failing} of {len(check.sets)} input sets fail;"
        f" {worst.distribution} set {worst.seed}{output}: max abs error {worst.max_abs:.3g}"
        f" (allowed {worst.limit_abs:.3g}),"
        f" relative RMSE {worst.rel_rmse:.3g} (allowed {worst.limit_rel_rmse:.3g}),"
        f" {worst.failing_share:.2%} of elements fail{nan}{place}{row}"
    )


def _slice_problem(item: InputSetCheck) -> str:
    """The slice that differs most, if it differs too much; "" otherwise."""
    if item.slice_rel_rmse <= item.limit_slice_rel_rmse:
        return ""
    row = f"row {item.worst_slice_output}{list(item.worst_slice)}" if item.worst_slice else "a row"
    return (
        f"; {row}: relative RMSE"
        f" {item.slice_rel_rmse:.3g} (allowed {item.limit_slice_rel_rmse:.3g})"
    )
