"""Times a newcomer, the holder of a place and the baseline in turn, each in a process of its own.

All three take the same calls on the same input sets, in a random order; every replay of a candidate
is examined. A newcomer that is about to win is tried on new sets: one that keeps results is slower
there.
"""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from functools import partial

from evoengine.evaluate.device.worker_protocol import HOLDER, NEWCOMER, RACING
from evoengine.evaluate.worker.backend import Announce
from evoengine.evaluate.worker.candidate_failures import (
    CandidateFailure,
    Cheated,
    VoidTiming,
    WrongInRace,
)
from evoengine.evaluate.worker.check import explain
from evoengine.evaluate.worker.cuda.baseline_replays import BaselineReplays
from evoengine.evaluate.worker.cuda.baseline_turns import BaselineTurns
from evoengine.evaluate.worker.cuda.call_counts import WARM_UP_CALLS
from evoengine.evaluate.worker.cuda.cuda_backend import CudaBackend
from evoengine.evaluate.worker.cuda.dealing import drawn
from evoengine.evaluate.worker.cuda.examination import Examination, Examined, Meanwhile
from evoengine.evaluate.worker.cuda.input_pool import PoolSet, timed_sets
from evoengine.evaluate.worker.cuda.pair_client import PairClient
from evoengine.evaluate.worker.cuda.timed_pairs import ClockGaps
from evoengine.evaluate.worker.race_judge import SideFailed
from evoengine.protocols import CompiledCase, Job
from evoengine.records import CaseCheck, RaceTiming, Samples
from evoengine.statistics import (
    geomean,
    median,
    race_is_decided,
    race_is_plain,
    race_is_won,
    race_ratio,
)

# How many groups are taken before each look at the ratio; undecided after the last one, the
# newcomer has not won.
LOOKS = (2, 4, 8)
# At the first look, which has too few groups for an interval, a difference decides that each group
# shows and that is far beyond what groups differ by; to lose takes less of it than to win.
PLAINLY_FASTER, PLAINLY_SLOWER = 0.05, 0.015
ROUNDS, MORE_ROUNDS = 2, 2  # of a group, and up to as many more, drawn
# Before the first case of a race, and before each other one: a process is slower in its first
# replays, which the holder's may have behind it.
WARM_UP_ROUNDS, MORE_WARM_UP_ROUNDS = 8, 3
# Replays of one side about whose times two clocks disagree.
MOST_DISAGREEMENTS = 5
BASELINE = "baseline"

Sides = tuple[Examination, Examination]  # newcomer and holder, loaded


@dataclass(frozen=True)
class Racer:
    """One side on one case, and the runners that run no other candidate."""

    side: str
    compiled: CompiledCase
    tier: str
    runners: PairClient


@dataclass(frozen=True)
class CaseRace:
    """One case of a race."""

    case: str
    baseline: str
    newcomer: Racer
    holder: Racer

    @property
    def sides(self) -> tuple[Racer, Racer]:
        """Newcomer and holder."""
        return self.newcomer, self.holder


@dataclass
class _Laps:
    """The times of one case so far, in microseconds a call."""

    newcomer_us: list[float] = field(default_factory=list)
    holder_us: list[float] = field(default_factory=list)
    baseline_us: list[float] = field(default_factory=list)
    calls: list[int] = field(default_factory=list)
    groups: list[int] = field(default_factory=list)
    gaps: ClockGaps = field(default_factory=ClockGaps)  # of the newcomer

    def add(self, times: Mapping[str, Sequence[float]], calls: int, group: int) -> None:
        """Adds one replay of each side, whose samples have `calls` calls."""
        self.newcomer_us += [time_us / calls for time_us in times[NEWCOMER]]
        self.holder_us += [time_us / calls for time_us in times[HOLDER]]
        self.baseline_us += [time_us / calls for time_us in times[BASELINE]]
        samples = len(times[BASELINE])
        self.calls += [calls] * samples
        self.groups += [group] * samples

    def timing(self, race: CaseRace) -> RaceTiming:
        return RaceTiming(
            case=race.case,
            baseline=race.baseline,
            newcomer_us=tuple(self.newcomer_us),
            holder_us=tuple(self.holder_us),
            baseline_us=tuple(self.baseline_us),
            calls=tuple(self.calls),
            groups=tuple(self.groups),
        )


class RacedTiming:
    """One race over the objective's cases."""

    def __init__(
        self,
        backend: CudaBackend,
        newcomer: Job,
        ours: PairClient,
        holder: Job,
        theirs: PairClient,
        announce: Announce,
    ) -> None:
        """`ours` run only the newcomer, `theirs` only the holder."""
        self._backend = backend
        self._cold = backend.scores_cold
        self._announce = announce
        self._cases = [
            CaseRace(
                case=one.plan.case,
                baseline=newcomer.baselines[one.plan.case],
                newcomer=Racer(NEWCOMER, one, newcomer.tier, ours),
                holder=Racer(HOLDER, other, holder.tier, theirs),
            )
            for one, other in zip(
                backend.scored_cases(newcomer), backend.scored_cases(holder), strict=True
            )
        ]
        self._laps = {race.case: _Laps() for race in self._cases}
        self._disagreements = Counter[str]()  # by side

    def run(self) -> list[RaceTiming]:
        """The times of each case; raises SideFailed."""
        if len(self._cases) == 1:
            with self._both_loaded(self._cases[0]) as sides:
                timings, is_won = self._take_looks(lambda _: nullcontext(sides))
        else:  # a process has one case loaded at a time
            timings, is_won = self._take_looks(self._both_loaded)
        if is_won:
            self._refuse_tricks(secrets.choice(self._cases))
        return timings

    def _take_looks(
        self, loaded: Callable[[CaseRace], AbstractContextManager[Sides]]
    ) -> tuple[list[RaceTiming], bool]:
        """Groups until the race is decided: the times of each case, and whether it is won."""
        for look, groups in enumerate(LOOKS):
            for race in self._cases:
                with loaded(race) as sides:
                    self._run_groups(race, sides, range(LOOKS[look - 1] if look else 0, groups))
            timings = [self._laps[race.case].timing(race) for race in self._cases]
            ratio = geomean(map(race_ratio, timings))
            is_plain = look > 0 or race_is_plain(timings, PLAINLY_FASTER, PLAINLY_SLOWER)
            if is_plain and race_is_decided(ratio):
                break
        return timings, race_is_won(ratio)

    @contextmanager
    def _both_loaded(self, race: CaseRace) -> Iterator[Sides]:
        """Newcomer and holder; they are loaded and unloaded while others may have the GPU."""
        with self._loaded(race.newcomer) as ours, self._loaded(race.holder) as theirs:
            yield ours, theirs

    def _run_groups(self, race: CaseRace, sides: Sides, groups: Iterable[int]) -> None:
        """Groups with these numbers."""
        self._announce(f"preparing to race on {race.case}", False)
        with self._backend.harness.token.held():
            # of the one with more room for its buffers: neither replays more calls than it may
            larger = max(sides, key=lambda side: side.slot_bytes)
            calls = self._backend.calls(race.case, larger, race.baseline)
            self._announce("preparing the baseline", False)
            replays = self._backend.all_baselines.replays(race.case, race.baseline, calls.most)
            if 0 in groups:
                self._warm_up(race, sides, replays)
            turns = BaselineTurns(replays, calls, self._cold)
            for group in groups:
                rounds = ROUNDS + secrets.randbelow(MORE_ROUNDS + 1)
                while rounds:
                    if self._add_round(race, sides, turns, group):
                        rounds -= 1

    def _warm_up(self, race: CaseRace, sides: Sides, baseline: BaselineReplays) -> None:
        """Untimed replays of all three."""
        ours, theirs = sides
        is_first = race is self._cases[0]
        for _ in range(WARM_UP_ROUNDS if is_first else MORE_WARM_UP_ROUNDS):
            sets = drawn(timed_sets(self._backend.pool.sets(race.case)), WARM_UP_CALLS + 1)
            self._replay(race, NEWCOMER, ours, sets)
            self._replay(race, HOLDER, theirs, sets)
            baseline.replay(sets[WARM_UP_CALLS:], self._cold)

    def _add_round(self, race: CaseRace, sides: Sides, turns: BaselineTurns, group: int) -> bool:
        """One replay of all three, in a random order; false if two clocks disagree about one."""
        ours, theirs = sides
        count = turns.count
        sets = drawn(timed_sets(self._backend.pool.sets(race.case)), WARM_UP_CALLS + count)
        times: dict[str, tuple[float, ...]] = {}
        laps = self._laps[race.case]
        for side in drawn([NEWCOMER, HOLDER, BASELINE], 3):
            if side == BASELINE:
                times[side] = turns.take(sets[WARM_UP_CALLS:])
            else:
                examination = ours if side == NEWCOMER else theirs
                examined = self._replay(race, side, examination, sets, turns.prepare)
                times[side] = examined.times_us
                if side == NEWCOMER:
                    newcomer = examined
        doubtful = [side for side in times if not times[side]]
        self._disagreements.update(doubtful)
        for side in doubtful:
            if self._disagreements[side] > MOST_DISAGREEMENTS:
                raise _disagreement(side)
        if doubtful:
            return False
        laps.add(times, 1 if self._cold else count, group)
        laps.gaps.add(newcomer.gaps_us, turns.gaps_us, newcomer.host_gap_us, turns.host_gap_us)
        return True

    def _replay(
        self,
        race: CaseRace,
        side: str,
        examination: Examination,
        sets: Sequence[PoolSet],
        meanwhile: Meanwhile = lambda: None,
    ) -> Examined:
        """One replay of a candidate; raises SideFailed if an output is wrong."""
        self._announce(f"{RACING} {side} on {race.case}", True)
        with _blamed(side):
            examined = examination.replay(sets, self._cold, meanwhile)
            if examined.wrong:
                check = CaseCheck(case=race.case, hidden=False, ok=False, sets=examined.wrong)
                raise WrongInRace(explain(check))
        return examined

    def _refuse_tricks(self, race: CaseRace) -> None:
        """Raises SideFailed if the clocks of the newcomer, which is about to win, disagree on the
        whole, or if it is slower on new sets.
        """
        racer, laps = race.newcomer, self._laps[race.case]
        timed = Samples(
            candidate_calls=max(laps.calls),
            baseline_calls=max(laps.calls),
            candidate_us=tuple(laps.newcomer_us),
            baseline_us=tuple(laps.baseline_us),
            calls=tuple(laps.calls),
        )
        with _blamed(NEWCOMER):
            laps.gaps.refuse_forged(median(laps.newcomer_us) * median(laps.calls))
        step = f"{RACING} {NEWCOMER} on {race.case}"
        alive = partial(self._announce, step, True)
        # before the GPU is held: while it computes references, others may check
        self._backend.renew_sets(race.case, self._announce)
        with self._loaded(racer) as examination:
            self._announce(f"preparing to race on {race.case}", False)
            with self._backend.harness.token.held(), _blamed(NEWCOMER):
                alive()
                wrong = self._backend.refuse_memory(
                    racer.compiled, examination, timed, self._announce, alive, are_new=True
                )
                if wrong:
                    check = CaseCheck(case=race.case, hidden=False, ok=False, sets=wrong)
                    raise WrongInRace(explain(check))

    @contextmanager
    def _loaded(self, racer: Racer) -> Iterator[Examination]:
        """A side while it is loaded."""
        self._announce(f"{RACING} {racer.side} on {racer.compiled.plan.case}", True)
        with _blamed(racer.side):
            examination = self._backend.load(racer.compiled, racer.tier, racer.runners)
        try:
            yield examination
        except SideFailed as failed:
            if failed.side != racer.side:
                # after a timeout both have ended, and the first one is to blame
                with suppress(CandidateFailure):
                    examination.close()
            raise
        with _blamed(racer.side):
            examination.close()


def _disagreement(side: str) -> SideFailed:
    """The newcomer has lost; what disturbs a holder or a baseline may be neither's fault."""
    if side == NEWCOMER:
        return SideFailed(side, Cheated("two clocks disagree about the time of its replays"))
    return SideFailed("", VoidTiming(f"two clocks disagree about the time of the {side}'s replays"))


@contextmanager
def _blamed(side: str) -> Iterator[None]:
    """A failure inside is that of `side`; a time that cannot be trusted is nobody's."""
    try:
        yield
    except VoidTiming as void:
        raise SideFailed("", void) from void
    except CandidateFailure as failure:
        raise SideFailed(side, failure) from failure
