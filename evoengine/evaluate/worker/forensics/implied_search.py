"""Goes through what may be implied by a wrong output: statistics, keys, products, inputs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from evoengine.errors import TaskError
from evoengine.evaluate.worker.forensics.compared_output import ComparedOutput
from evoengine.evaluate.worker.forensics.explained_share import ExplainedShare
from evoengine.evaluate.worker.forensics.implied_inputs import ImpliedInputs
from evoengine.evaluate.worker.forensics.implied_keys import ImpliedKeys
from evoengine.evaluate.worker.forensics.implied_products import ImpliedProducts
from evoengine.evaluate.worker.forensics.implied_scores import ImpliedScores
from evoengine.evaluate.worker.forensics.implied_statistics import ImpliedStatistics
from evoengine.evaluate.worker.forensics.implied_totals import ImpliedTotals
from evoengine.evaluate.worker.forensics.implied_values import ImpliedValues
from evoengine.evaluate.worker.forensics.lead import Lead
from evoengine.evaluate.worker.forensics.recomputed_reference import RecomputedReference
from evoengine.evaluate.worker.forensics.reference_steps import StepRecorder
from evoengine.evaluate.worker.forensics.reference_window import ReferenceWindow
from evoengine.evaluate.worker.forensics.time_limit import time_limit

SHARE_OF_TIME = 0.6  # of an analysis: a slow reference leaves the rest for single changes
# what a deliberately changed call may raise besides TaskError
FAILURES = (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError)

T = TypeVar("T")


class ImpliedSearch:
    """Everything that is computed backwards from one wrong output."""

    def __init__(
        self,
        recompute: RecomputedReference,
        folder: Path,
        window: ReferenceWindow,
        explained: ExplainedShare,
        outputs: Sequence[ComparedOutput],
        tiles: Sequence[int],
        numbers: Mapping[str, float],
    ) -> None:
        """`folder` is that of the reference's file; `numbers` are those of the case by name."""
        self._recompute = recompute
        self._folder = folder
        self._window = window
        self._explained = explained
        self._outputs = outputs
        self._tiles = tiles
        self._numbers = numbers

    def leads(self) -> Iterator[Lead]:
        """What explains all of the output; ends after the first of its kinds that does, or with
        its share of the time. Raises TimeUp.
        """
        limit = time_limit(SHARE_OF_TIME * self._recompute.seconds)
        recorder = StepRecorder(self._folder, self._recompute.limit)
        self._window.compute(self._window.inputs, mode=recorder)
        implied = ImpliedValues(self._window, self._outputs, self._folder, limit)
        known = (implied, self._explained, recorder, self._tiles)
        task, worst = self._recompute.task, self._window.worst
        inputs = ImpliedInputs(task, self._window, self._explained, worst, self._tiles, limit)
        for search in (
            ImpliedKeys(*known[:3]).leads,
            ImpliedTotals(*known[:3]).leads,
            ImpliedProducts(*known, worst).leads,
            ImpliedScores(*known[:3]).leads,
            ImpliedStatistics(*known, self._numbers).leads,
            inputs.leads,
        ):
            # numbers are fitted, so what is only nearly right is no cause
            found = [lead for lead in in_spite_of_failures(search()) if lead.is_whole]
            yield from found
            if found or limit.is_over:
                return


def in_spite_of_failures(items: Iterator[T]) -> Iterator[T]:
    """Leads or changes up to one that fails, as where a reference was not written for such values;
    what was found stays found. Those that nobody took are left in `items`.
    """
    try:
        for item in items:  # noqa: UP028 - `yield from` would close `items` with this generator
            yield item
    except (TaskError, *FAILURES):
        return
