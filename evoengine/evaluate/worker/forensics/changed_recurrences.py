"""Recurrences whose state is lost, late or kept wrongly where a kernel begins a new chunk or row.

A reference writes a recurrence as a loop: a step takes what a step of the turn before has made, the
state. A kernel takes the loop in chunks, and what it carries from one to the next is the state that
the next chunk begins with.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from evoengine.evaluate.worker.forensics.changed_step import (
    ChangedStep,
    Instead,
    Rehearsal,
)
from evoengine.evaluate.worker.forensics.reference_steps import (
    CarriedOperand,
    Place,
    StepRecorder,
)
from evoengine.records import DiagnosisKind

CHUNKS = (32, 64, 16, 8, 128, 256, 4)
LEAST_TURNS = 4  # of a loop: a function that is called a few times is no recurrence


@dataclass(eq=False)
class Walk:
    """One state on its way through the turns of its loop."""

    begin: Any = None  # what the first turn is given
    history: list[torch.Tensor] = field(default_factory=list)  # what each turn made of it
    runs: int = 0  # how often the loop has begun
    ends: dict[tuple[int, int], torch.Tensor] = field(default_factory=dict)  # by run and turn

    def first(self, like: torch.Tensor) -> Any:
        """The state that the loop begins with; zero where no turn takes one."""
        return 0 * like if self.begin is None else self.begin

    def turn(self, state: Any) -> int:
        """The number of the turn that is given `state`; one that no turn made begins the loop."""
        if not self.history or state is not self.history[-1]:
            if self.history or self.begin is not state:
                self.runs += 1
            self.begin, self.history = state, []
        return len(self.history)


# (the walk, the turn, the state) -> the state that is used in its place
Taken = Callable[[Walk, int, Any], Any]
# (the walk, the turn, what the turn makes) -> what it makes in its place
Made = Callable[[Walk, int, torch.Tensor], torch.Tensor]


def changed_recurrences(
    recorder: StepRecorder, tiles: Sequence[int], extents: Mapping[str, int]
) -> Iterator[ChangedStep]:
    """The changes of the states of all loops together, and of each by itself."""
    carried = [one for one in recorder.carried.values() if recorder.calls[one.place] >= LEAST_TURNS]
    makers = list(dict.fromkeys(one.maker for one in carried))
    groups = [makers] + [[one] for one in makers if len(makers) > 1]
    for group in groups if makers else ():
        uses = [one for one in carried if one.maker in group]
        turns = max(recorder.calls[place] for one in uses for place in (one.place, one.maker))
        along = [name for name, extent in extents.items() if extent == turns]
        where = f" along {along[0]}" if len(along) == 1 else ""
        named = _names(uses, recorder)
        yield from _read_early(group, uses, recorder)
        for size in dict.fromkeys((*tiles, *CHUNKS)):
            if size < turns:
                chunk = f"chunk of {size}{where}"
                yield from _of_chunks(uses, size, chunk, named)
                if turns % size:  # a walk from the end may have its chunks begin at the start
                    yield from _lost(uses, size, turns % size, chunk, named)
        yield from _of_rows(uses, named)
        yield _change(
            uses,
            f"with the state of two turns before, {named}",
            "the state is read before it is updated (a stale copy, such as the other of two"
            f" buffers): each turn begins with the {named} of two turns before",
            lambda walk, turn, state: walk.history[-2] if turn > 1 else state,
        )


def _names(uses: Sequence[CarriedOperand], recorder: StepRecorder) -> str:
    found = dict.fromkeys(recorder.found[one.place].operand(one.number) for one in uses)
    return " and ".join(name for name in found if name) or "state"


def _of_chunks(
    uses: Sequence[CarriedOperand], size: int, chunk: str, named: str
) -> Iterator[ChangedStep]:
    def begins(turn: int) -> bool:
        return turn > 0 and turn % size == 0

    yield from _lost(uses, size, 0, chunk, named)
    yield from _undecayed(uses, size, chunk, named)
    yield _change(
        uses,
        f"where the first step of every {chunk} takes {named} as it is",
        f"the first step of each {chunk} takes the carry as it is: {named} is not multiplied by"
        " its factor (the decay) there",
        lambda walk, turn, state: state,
        step=lambda func, args, kwargs, turn, number: (
            args[number] if begins(turn) else func(*args, **kwargs)
        ),
    )
    yield _change(
        uses,
        f"where the first step of every {chunk} is done twice to {named}",
        f"the factor (the decay) of the first step of each {chunk} is applied twice to the carry,"
        f" {named}",
        lambda walk, turn, state: state,
        step=lambda func, args, kwargs, turn, number: (
            _twice(func, args, kwargs, number) if begins(turn) else func(*args, **kwargs)
        ),
    )
    yield from _of_one_chunk(uses, size, chunk, named)


def _lost(
    uses: Sequence[CarriedOperand], size: int, first: int, chunk: str, named: str
) -> Iterator[ChangedStep]:
    """Chunks, the first of which has `first` turns, that lack what was carried to them."""

    def begins(turn: int) -> bool:
        return turn > 0 and (turn - first) % size == 0

    for begin, said in (
        (lambda walk, state: walk.first(state), f"the first state of {named} (zero)"),
        (lambda _walk, state: 0 * state, f"{named} at zero, not the first state"),
    ):
        yield _change(
            uses,
            f"with {named} begun anew in every {chunk}",
            f"the carry of the chunk before is missing: each {chunk} begins with {said}, the"
            " recurrence begins again",
            lambda walk, turn, state, b=begin: b(walk, state) if begins(turn) else state,  # type: ignore[misc]
            weight=1.02,
        )
    yield _change(
        uses,
        f"with the {named} of before the last element carried on from every {chunk}",
        f"the carry to the next chunk leaves out the last element: each {chunk} hands on the"
        f" {named} of one step too early (off by one)",
        lambda walk, turn, state: walk.history[-2] if begins(turn) else state,
    )


def _read_early(
    makers: Sequence[Place], uses: Sequence[CarriedOperand], recorder: StepRecorder
) -> Iterator[ChangedStep]:
    """What a turn makes of its state, made of that of the turn before."""
    carried = {(one.place, one.number) for one in uses}
    for place, feeds in recorder.feeds.items():
        for number, maker in enumerate(feeds):
            if maker is None or maker not in makers or (place, number) in carried:
                continue
            walks = {maker: Walk()}
            own = [one for one in uses if one.maker == maker]
            instead = dict(_instead(own, walks, _as_it_is))
            if place in instead:
                continue
            instead[place] = _reading_old(walks[maker], number)
            step = recorder.found[place]
            named = step.operand(number) or "the state"
            yield ChangedStep(
                DiagnosisKind.changed_step,
                f"with {named} of the turn before in {step.words}",
                instead,
                1.01,
                mistake=f"{named} is read before its update: {step.result} takes the old state,"
                " of the step before, not the new one (off by one)",
            )


def _reading_old(walk: Walk, number: int) -> Instead:
    def instead(func: Any, args: tuple[Any, ...], kwargs: Any) -> Any:
        given = list(args)
        if walk.history and args[number] is walk.history[-1]:
            new = walk.history[-1]
            given[number] = walk.history[-2] if len(walk.history) > 1 else walk.first(new)
        return func(*given, **kwargs)

    return instead


def _twice(func: Any, args: Sequence[Any], kwargs: Any, number: int) -> Any:
    given = list(args)
    given[number] = func(*args, **kwargs)
    return func(*given, **kwargs)


def _undecayed(
    uses: Sequence[CarriedOperand], size: int, chunk: str, named: str
) -> Iterator[ChangedStep]:
    """Chunks that begin anew, to whose results what is carried is only added."""

    def carry(walk: Walk, turn: int) -> Any:
        """What the chunk of this turn was handed."""
        begin = turn // size * size
        return walk.history[begin - 1] if begin else 0.0

    def taken(walk: Walk, turn: int, state: Any) -> Any:
        if turn % size == 0:
            return walk.first(state)
        return state - carry(walk, turn)

    yield _change(
        uses,
        f"with {named} of the chunks before added as it is to every {chunk}",
        f"the carry is added without the decay within the chunk: each {chunk} begins at zero, and"
        f" {named} of the chunk before is added to all of its steps without their factors",
        taken,
        lambda walk, turn, made: made + carry(walk, turn),
    )


def _of_one_chunk(
    uses: Sequence[CarriedOperand], size: int, chunk: str, named: str
) -> Iterator[ChangedStep]:
    """What is handed on has the own chunk only, as if that had begun anew."""
    walks = {one.maker: Walk() for one in uses}

    def noting(walk: Walk, turn: int, state: Any) -> Any:
        if turn == 0 or turn % size:
            return state
        walk.ends[walk.runs, turn] = state
        return walk.first(state)

    def handing_on(walk: Walk, turn: int, state: Any) -> Any:
        return walk.ends[walk.runs, turn] if turn and turn % size == 0 else state

    yield _rehearsed(
        uses,
        Rehearsal(_instead(uses, walks, noting)),
        walks,
        handing_on,
        f"with {named} of the chunk before alone carried on to every {chunk}",
        f"the carry holds the chunk before alone: each {chunk} begins with what {named} would be"
        " had the chunk before begun at zero, that of earlier chunks is lost",
    )


def _of_rows(uses: Sequence[CarriedOperand], named: str) -> Iterator[ChangedStep]:
    """A state that is kept from one row, or batch, to the next."""
    walks = {one.maker: Walk() for one in uses}

    def noting(walk: Walk, turn: int, made: torch.Tensor) -> torch.Tensor:
        walk.ends[walk.runs, 0] = made
        return made

    def kept(walk: Walk, turn: int, state: Any) -> Any:
        if turn:
            return state
        end = walk.ends[walk.runs, 0]
        if end.dim() < 2 or end.shape[0] < 2:
            raise ValueError("no rows")
        before = end.roll(1, 0)
        before[0] = state[0] if isinstance(state, torch.Tensor) else state
        return before

    yield _rehearsed(
        uses,
        Rehearsal(_instead(uses, walks, _as_it_is, noting)),
        walks,
        kept,
        f"with the last {named} of the row before as the first",
        f"{named} is not set back (reset) between rows: each row (batch) begins with the state at"
        " the end of the row before",
    )


def _as_it_is(_walk: Walk, _turn: int, state: Any) -> Any:
    return state


def _rehearsed(
    uses: Sequence[CarriedOperand],
    before: Rehearsal,
    walks: Mapping[Place, Walk],
    taken: Taken,
    words: str,
    mistake: str,
) -> ChangedStep:
    """A change that needs the states of a loop before it is computed with them."""
    found = _instead(uses, walks, taken, again=True)
    kind = DiagnosisKind.changed_step
    return ChangedStep(kind, words, found, 1.0, mistake=mistake, of_whole=True, rehearsal=before)


def _change(
    uses: Sequence[CarriedOperand],
    words: str,
    mistake: str,
    taken: Taken,
    made: Made | None = None,
    weight: float = 1.0,
    step: Callable[..., Any] | None = None,
) -> ChangedStep:
    walks = {one.maker: Walk() for one in uses}
    found = _instead(uses, walks, taken, made, step)
    return ChangedStep(DiagnosisKind.changed_step, words, found, weight, mistake=mistake)


def _instead(
    uses: Sequence[CarriedOperand],
    walks: Mapping[Place, Walk],
    taken: Taken,
    made: Made | None = None,
    step: Callable[..., Any] | None = None,
    again: bool = False,
) -> dict[Place, Instead]:
    """The steps that take a state, and those that make one; some do both. `again`: the walks have
    been gone before, and their runs are counted from the start.
    """
    if again:
        restart = _Restart(walks)
    found: dict[Place, Instead] = {}
    numbers: dict[Place, list[CarriedOperand]] = {}
    for one in uses:
        numbers.setdefault(one.place, []).append(one)
    for place in dict.fromkeys([*numbers, *walks]):
        own = numbers.get(place, [])
        walk = walks.get(place)

        def instead(
            func: Any,
            args: tuple[Any, ...],
            kwargs: Any,
            own: Sequence[CarriedOperand] = own,
            walk: Walk | None = walk,
        ) -> Any:
            if again:
                restart.once()
            given = list(args)
            turn = 0
            for one in own:
                of = walks[one.maker]
                turn = of.turn(args[one.number])
                given[one.number] = taken(of, turn, args[one.number])
            done = step is not None and own and func.__name__ in ("mul", "__mul__", "__rmul__")
            result = (
                step(func, given, kwargs, turn, own[0].number)
                if done and step is not None
                else func(*given, **kwargs)
            )
            if walk is not None:
                result = result if made is None else made(walk, len(walk.history), result)
                walk.history.append(result)
            return result

        found[place] = instead
    return found


@dataclass(eq=False)
class _Restart:
    """Sets walks back before they are gone a second time."""

    walks: Mapping[Place, Walk]
    is_done: bool = False

    def once(self) -> None:
        if not self.is_done:
            self.is_done = True
            for walk in self.walks.values():
                walk.begin, walk.history, walk.runs = None, [], 0
