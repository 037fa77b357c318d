"""Looks for the change of the reference that gives what a candidate wrote."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from functools import cached_property

import torch

from evoengine.errors import TaskError
from evoengine.evaluate.worker.forensics.changed_input import ChangedInputs
from evoengine.evaluate.worker.forensics.changed_inputs import changed_inputs, exchanged_inputs
from evoengine.evaluate.worker.forensics.changed_numbers import changed_numbers
from evoengine.evaluate.worker.forensics.changed_scalars import changed_scalars
from evoengine.evaluate.worker.forensics.changed_step import ChangedStep
from evoengine.evaluate.worker.forensics.changed_steps import detailed_changes, plain_changes
from evoengine.evaluate.worker.forensics.compared_output import ComparedOutput
from evoengine.evaluate.worker.forensics.coupled_inputs import coupled_inputs
from evoengine.evaluate.worker.forensics.error_region import error_region
from evoengine.evaluate.worker.forensics.explained_share import Explained, ExplainedShare
from evoengine.evaluate.worker.forensics.fitted_scalars import fitted_scalars
from evoengine.evaluate.worker.forensics.implied_search import (
    FAILURES,
    ImpliedSearch,
    in_spite_of_failures,
)
from evoengine.evaluate.worker.forensics.implied_values import ImpliedValues
from evoengine.evaluate.worker.forensics.index_maps import IndexMaps
from evoengine.evaluate.worker.forensics.kept_sums import KeptSums
from evoengine.evaluate.worker.forensics.lead import WHOLE, Lead, capital
from evoengine.evaluate.worker.forensics.narrow_sums import imprecise_steps
from evoengine.evaluate.worker.forensics.not_numbers import not_number_leads
from evoengine.evaluate.worker.forensics.recomputed_reference import RecomputedReference
from evoengine.evaluate.worker.forensics.reference_steps import (
    StepChange,
    StepRecorder,
    steps_in_order,
)
from evoengine.evaluate.worker.forensics.reference_window import (
    EVERYTHING,
    ONE_PLANE,
    ReferenceWindow,
)
from evoengine.evaluate.worker.forensics.rounded_inputs import rounded_inputs
from evoengine.evaluate.worker.forensics.time_limit import TimeLimit, time_limit
from evoengine.evaluate.worker.forensics.wrong_call import WrongCall
from evoengine.evaluate.worker.inputs import Tensors, scalar_inputs
from evoengine.records import DiagnosisKind

LEAST_SHARE = 0.4
# of the time, after which the many changes of steps, and then those of inputs, wait for what is
# implied
SHARE_OF_STEPS, SHARE_OF_INPUTS = 0.45, 0.6
SHARE_OF_FITTING = 0.08  # of the time, for values of scalars
LEAST_PROBED = 16  # wrong elements in a probe that can tell
PROBED_SHARE, PROBED_REDUCTION = 0.2, 0.5  # a change that explains less there is not looked at
NEARLY = 0.9  # of the squared error: what comes so near explains most, if not within the gate
LEAST_REDUCTION, LEAST_OF_E4M3 = 0.4, 0.8  # by a rounding
NO_ROUNDING = 0.003  # of the wrong elements, at which no rounding explains the error
PARTLY = 0.92  # of the weight of a change that holds for all: others are looked for
QUICK_S = 0.003  # a window's reference: that of the whole case is then quick as well, mostly
LARGE_INPUTS = 1 << 21  # elements: to change them takes longer than to compute a window
WHOLE_S = 0.1  # a reference of the whole case that takes more is not computed again and again
SPOILED = 0.05  # of right elements: with more, the change holds only where it is wrong
EXACT = 0.004  # of right elements: with more, another change may fit better


class ChangedReferences:
    """The changed references of one wrong call."""

    def __init__(
        self,
        recompute: RecomputedReference,
        window: ReferenceWindow,
        probe: ReferenceWindow,
        call: WrongCall,
        outputs: Sequence[ComparedOutput],
        tiles: Sequence[int],
        has_scratch: bool = False,
    ) -> None:
        """`probe` is a small window in which changes are tried first; `tiles` are sizes that the
        candidate's plan names, the likelier ones first; `has_scratch` says whether it keeps
        anything between launches or blocks.
        """
        self._recompute = recompute
        self._window = window
        self._call = call
        self._outputs = outputs
        self._tiles = tiles
        self._has_scratch = has_scratch
        self._explained = ExplainedShare(window, outputs)
        self._probe = probe
        self._probed = self._explained if probe is window else ExplainedShare(probe, outputs)
        # absolute, as code objects name the files that are imported
        self._folder = recompute.functions.file_of(recompute.task.reference).parent.absolute()
        self.tried = 0
        self._pause: TimeLimit | None = None
        self._second_pause: TimeLimit | None = None
        self._detailed: Iterator[ChangedStep] = iter(())
        self._costly: list[ChangedStep] = []
        self._inputs: Iterator[ChangedInputs] = iter(())

    def leads(self) -> Iterator[Lead]:
        """Every change that explains enough; ends after one that explains all. Raises TimeUp."""
        if not self._explained.bad:
            return
        first = [self._of_exchanges, self._of_plain_steps, self._of_numbers, self._of_steps]
        elements = sum(tensor.numel() for tensor in self._call.inputs.values())
        if elements > LARGE_INPUTS:  # a change of steps is tried on windows alone
            first = [*first[1:], first[0]]
        self._pause = time_limit(SHARE_OF_STEPS * self._recompute.seconds)
        self._second_pause = time_limit(SHARE_OF_INPUTS * self._recompute.seconds)
        last = (self._of_inputs, self._of_implied, self._of_other_inputs, self._of_other_steps)
        for group in (self._of_not_numbers, self._of_scalars, *first, *last):
            whole = False
            for lead in group():
                yield lead
                whole |= lead.is_whole and lead.weight >= 1
            if whole:
                return
        yield from self.precision_leads()

    def precision_leads(self) -> Iterator[Lead]:
        """The rounding that comes nearest to the error. Raises TimeUp."""
        best: Lead | None = None
        worst = self._window.worst
        region = error_region(worst.bad, worst.axes, self._tiles)
        # what is wrong in a range of rows alone was not added up in low precision
        is_everywhere = not region.words.startswith("only ")
        for change in self._roundings():
            found = self._outcome(change)
            if found is None:
                continue
            rough = isinstance(change, ChangedStep) and change.is_rough
            share = max(found.share, found.reduction)
            is_like = 0.4 < found.size < 2.5 and found.reduction > -1.5
            if rough and is_everywhere and is_like and self._may_be_rounding(change):
                share = max(share, 0.75 - abs(1 - found.size) / 4)
            least = max(LEAST_REDUCTION, 0.0 if isinstance(change, ChangedStep) else change.least)
            if "e4m3" in change.words:  # of which few values make much look alike
                least = max(least, LEAST_OF_E4M3)
            if share >= least and (best is None or share > best.share + 0.03):
                fits = share <= max(found.share, found.reduction)
                like = "that of" if fits else "as large as"
                said = f"{change.mistake}: the error" if change.mistake else "the error"
                said = said if fits else f"perhaps {said}"  # any error may have that size
                best = Lead(
                    DiagnosisKind.low_precision,
                    capital(f"{said} is {like} the reference {_with(change)}: low precision."),
                    min(1.0, share),
                    1.0,
                    {
                        "change": change.words,
                        "error_explained": round(found.reduction, 3),
                        "size": round(found.size, 3),
                    },
                )
        if best is not None:
            yield best

    def _may_be_rounding(self, change: ChangedInputs | ChangedStep) -> bool:
        changed = self._changed(change, self._window)
        return changed is not None and self._explained.no_rounding(changed) < NO_ROUNDING

    def _of_not_numbers(self) -> Iterator[Lead]:
        steps = steps_in_order(self._recorded())
        yield from not_number_leads(self._window.worst, steps, self._tiles)

    def _of_scalars(self) -> Iterator[Lead]:
        task, case = self._recompute.task, self._call.case
        is_found = False
        for lead in self._try_all(changed_scalars(task, case)):
            yield lead
            is_found |= lead.is_whole
        if not is_found:
            limit = time_limit(SHARE_OF_FITTING * self._recompute.seconds)
            yield from self._try_all(fitted_scalars(task, case, self._reduction, limit))

    def _reduction(self, change: ChangedInputs) -> float | None:
        """The share of the squared error that a change of scalars explains."""
        try:
            found = self._changed(change, self._window)
        except (TaskError, *FAILURES):
            return None
        return None if found is None else self._explained.of(found).reduction

    def _of_exchanges(self) -> Iterator[Lead]:
        yield from self._try_all(exchanged_inputs(self._recompute.task, self._call.inputs))

    def _of_inputs(self) -> Iterator[Lead]:
        """As _of_steps."""
        task, inputs = self._recompute.task, self._call.inputs
        self._inputs = iter(changed_inputs(task, self._call.case, inputs, self._tiles))
        yield from self._try_all(self._inputs, self._second_pause)

    def _of_other_inputs(self) -> Iterator[Lead]:
        """Those that are left."""
        yield from self._try_all(self._inputs)

    def _of_plain_steps(self) -> Iterator[Lead]:
        known = self._recorded(), self._tiles, self._extents(), _begins_of(self._window.worst.bad)
        yield from self._try_all(plain_changes(*known))

    def _of_numbers(self) -> Iterator[Lead]:
        task, case = self._recompute.task, self._call.case
        scalars = scalar_inputs(task, case)
        yield from self._try_all(changed_numbers(steps_in_order(self._recorded()), scalars))
        yield from self._try_all(coupled_inputs(self._call.inputs, scalars))

    def _of_steps(self) -> Iterator[Lead]:
        """As many as are tried before the search has used its share of the time."""
        known = self._recorded(), self._tiles, self._extents(), self._has_scratch
        self._detailed = detailed_changes(*known)
        yield from self._try_all(self._cheap(self._detailed), self._pause)

    def _cheap(self, changes: Iterator[ChangedStep]) -> Iterator[ChangedStep]:
        """Those that need no more than a window; the others, which take ten times as long, wait."""
        for change in changes:
            if _needs_all(change):
                self._costly.append(change)
            else:
                yield change

    def _of_other_steps(self) -> Iterator[Lead]:
        """Those that are left."""
        yield from self._try_all(itertools.chain(self._costly, self._detailed))

    def _of_implied(self) -> Iterator[Lead]:
        """What intermediate results and inputs must have been. Raises TimeUp."""
        window, explained = self._window, self._explained
        if self._recorded().is_repeated:  # what steps must give is found where each is called once
            window = self._window.resized(ONE_PLANE)
            if not window.works:
                return
            explained = ExplainedShare(window, self._outputs)
        elif self._window.call_s < QUICK_S and self._whole and self._whole[0].call_s < QUICK_S:
            window, explained = self._whole
        numbers = {**self._extents(), **{f"{size}, of the plan": size for size in self._tiles}}
        known = ImpliedSearch(
            self._recompute, self._folder, window, explained, self._outputs, self._tiles, numbers
        )
        is_found = False
        for lead in known.leads():
            yield lead
            is_found |= lead.is_whole
        if self._whole is None:
            return
        if not is_found:
            yield from in_spite_of_failures(self._of_kept_sums())
        task, worst = self._recompute.task, self._window.worst
        maps = IndexMaps(task, self._whole[0], worst, self._call.inputs)
        yield from in_spite_of_failures(maps.leads())

    def _of_kept_sums(self) -> Iterator[Lead]:
        assert self._whole is not None
        window, explained = self._whole
        recorder = StepRecorder(self._folder, self._recompute.limit)
        window.compute(window.inputs, mode=recorder)
        implied = ImpliedValues(window, self._outputs, self._folder, self._recompute.limit)
        yield from KeptSums(implied, explained, recorder, self._tiles).leads()

    def _extents(self) -> dict[str, int]:
        scope = self._recompute.task.scope(self._call.case)
        return {
            name: value
            for name, value in scope.items()
            if isinstance(value, int) and not isinstance(value, bool)
        }

    def _roundings(self) -> Iterator[ChangedInputs | ChangedStep]:
        yield from rounded_inputs(self._window.inputs)
        recorder = self._recorded()
        yield from imprecise_steps(steps_in_order(recorder), recorder)

    def _recorded(self) -> StepRecorder:
        recorder = StepRecorder(self._folder, self._recompute.limit)
        self._window.compute(self._window.inputs, mode=recorder)
        return recorder

    def _try_all(
        self,
        changes: Iterator[ChangedInputs | ChangedStep],
        pause: TimeLimit | None = None,
    ) -> Iterator[Lead]:
        """The leads of these changes; the rest of them is not taken where `pause` is over."""
        for change in in_spite_of_failures(changes):
            found = self._outcome(change)
            lead = self._lead(change, found) if found is not None else None
            if lead is not None:
                yield lead
                settled = lead.is_whole and change.weight >= 1
                if settled and found is not None and found.spoiled < EXACT:
                    return
            if pause is not None and pause.is_over:
                return

    def _outcome(self, change: ChangedInputs | ChangedStep) -> Explained | None:
        """What a change explains; None where the reference cannot be computed with it."""
        self.tried += 1
        try:
            if _needs_all(change):
                return self._outcome_of_all(change)
            found = None
            if self._is_tried_first(change):
                found = self._changed(change, self._probe)
                if found is None or not self._probed.may_explain(
                    found, PROBED_SHARE, PROBED_REDUCTION
                ):
                    return None
            if found is None or self._probe is not self._window:
                found = self._changed(change, self._window)
            return None if found is None else self._explained.of(found)
        except (TaskError, *FAILURES):
            return None

    def _outcome_of_all(self, change: ChangedInputs | ChangedStep) -> Explained | None:
        if self._whole is None:
            return None
        window, explained = self._whole
        found = self._changed(change, window)
        return None if found is None else explained.of(found)

    @cached_property
    def _whole(self) -> tuple[ReferenceWindow, ExplainedShare] | None:
        """The whole case, where its reference is quick enough."""
        window = self._window.resized(EVERYTHING)
        if not window.works or window.call_s > WHOLE_S:
            return None
        return window, ExplainedShare(window, self._outputs)

    def _is_tried_first(self, change: ChangedInputs | ChangedStep) -> bool:
        """Whether the probe, in which enough errors can be seen, decides if it is looked at."""
        can_tell = self._probed.bad >= LEAST_PROBED
        return can_tell and change.kind is not DiagnosisKind.low_precision

    def _changed(
        self, change: ChangedInputs | ChangedStep, window: ReferenceWindow
    ) -> Tensors | None:
        if isinstance(change, ChangedStep):
            before = change.rehearsal
            if before is not None and not before.is_done:
                before.is_done = True
                mode = StepChange(self._folder, self._recompute.limit, dict(before.instead))
                window.compute(window.inputs, mode=mode)
            mode = StepChange(self._folder, self._recompute.limit, dict(change.instead))
            return window.compute(window.inputs, mode=mode)
        if change.change is not None:
            changed = window.cut_inputs(change.change(self._call.inputs))
            found = window.compute(changed, change.scalars)
            return found if found is None or change.after is None else change.after(found)
        if change.cut_change is not None:
            return window.compute(change.cut_change(window.inputs))
        found = window.compute(window.inputs, change.scalars)
        if found is None or not change.is_repeated:
            return found
        left = {name: value for name, value in found.items() if name in window.inputs}
        return window.compute({**window.inputs, **left}, change.scalars)

    def _lead(self, change: ChangedInputs | ChangedStep, found: Explained) -> Lead | None:
        nearly = found.reduction >= NEARLY and found.spoiled < SPOILED
        share = max(found.share, 0.85 * found.reduction if nearly else 0.0)
        least = 0.0 if isinstance(change, ChangedStep) else change.least
        if share < max(LEAST_SHARE, least):
            return None
        where = ""
        weight = change.weight
        if found.spoiled > SPOILED:
            where = " there"
            weight *= PARTLY
        elif found.spoiled > EXACT:
            weight *= 1 - found.spoiled
        what = "equals" if found.share >= WHOLE else "is nearly" if nearly else "partly equals"
        said = f"the output {what}{where} the reference {_with(change)}."
        if change.mistake:
            sure = found.share >= WHOLE and not where
            said = f"{'' if sure else 'Probably '}{change.mistake}: {said}"
        return Lead(
            change.kind,
            capital(said),
            share,
            weight,
            {
                "change": change.words,
                "explained": round(found.share, 4),
                "right_elements_that_differ": round(found.spoiled, 4),
                "error_explained": round(found.reduction, 3),
            },
            is_of_some=bool(where),
        )


def _begins_of(bad: torch.Tensor) -> tuple[int, ...]:
    """The first wrong index along each axis that begins with more than one right one."""
    found = []
    for axis in range(bad.dim()):
        others = tuple(one for one in range(bad.dim()) if one != axis)
        first = int((bad.any(others) if others else bad).int().argmax())
        if first > 1:
            found.append(first)
    return tuple(dict.fromkeys(found))


def _needs_all(change: ChangedInputs | ChangedStep) -> bool:
    """Whether it can be tried on the whole case alone."""
    return change.of_whole if isinstance(change, ChangedStep) else change.after is not None


def _with(change: ChangedInputs | ChangedStep) -> str:
    return f"with {change.words}" if isinstance(change, ChangedInputs) else change.words
