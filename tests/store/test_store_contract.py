"""What every Store promises, run over all of them."""

from __future__ import annotations

import pytest

from evoengine.digest import digest
from evoengine.errors import StoreError
from evoengine.protocols import (
    FINAL,
    FIRST,
    VERIFY,
    ChangeRow,
    EndRow,
    FailureRow,
    PastRace,
    ProposalRow,
    RaceRow,
    ReplyRow,
    RequestRow,
    Row,
    Store,
    TrialSummary,
    VerdictRow,
)
from evoengine.records import EndKind, RaceResult, RunInfo, Status, Unanswered, Usage
from evoengine.store.memory_store import MemoryStore
from evoengine.store.sqlite_store import SqliteStore
from tests.store.rows_of_a_run import (
    SOURCE,
    change,
    end,
    failure,
    info,
    promising,
    proposal,
    race,
    reply,
    request,
    verdict,
)

AnyStore = SqliteStore | MemoryStore


def test_both_are_stores(store: AnyStore) -> None:
    fits: Store = store
    assert list(fits.trials()) == []


@pytest.mark.parametrize(
    "row", [info(), reply(3), reply(3, 1), proposal(3), proposal(0, None)], ids=repr
)
def test_a_row_comes_back_as_it_went_in(
    store: AnyStore, row: RunInfo | ReplyRow | ProposalRow
) -> None:
    store.append(row)
    if isinstance(row, RunInfo):
        assert store.get(RunInfo) == row
    elif isinstance(row, ReplyRow):
        assert store.get(ReplyRow, row.trial, row.turn) == row
    else:
        assert store.get(ProposalRow, row.trial) == row


@pytest.mark.parametrize("status", list(Status))
def test_a_verdict_comes_back_complete_including_infinite_errors(
    store: AnyStore, status: Status
) -> None:
    store.append(proposal(2), verdict(2, 0), verdict(2, 1, status))
    assert store.get(VerdictRow, 2, 0) == verdict(2, 0)
    assert store.get(VerdictRow, 2, 1) == verdict(2, 1, status)


def test_a_missing_row_is_none(store: AnyStore) -> None:
    assert store.get(RunInfo) is None
    store.append(info(), reply(1), proposal(1), verdict(1))
    assert store.get(ReplyRow, 1, 1) is None
    assert store.get(ReplyRow, 2) is None
    assert store.get(ProposalRow, 2) is None
    assert store.get(VerdictRow, 1, 1) is None


@pytest.mark.parametrize(
    ("row", "named"),
    [
        (info("other"), "the run's description"),
        (reply(1), "reply 0 of trial 1"),
        (proposal(1), "the proposal of trial 1"),
        (verdict(1), "verdict 0 of trial 1"),
        (race(1), "race 0 of trial 1"),
        (request(1), "request 0 of trial 1"),
        (failure(1), "the failure of request 0 of trial 1"),
        (change(0), "change 0 of the settings"),
    ],
)
def test_nothing_is_overwritten(store: AnyStore, row: Row, named: str) -> None:
    store.append(info(), reply(1), proposal(1), verdict(1), request(1), failure(1), change(0))
    store.append(proposal(0), race(1))
    with pytest.raises(
        StoreError, match=f"{named} is already stored; stored rows are never overwritten"
    ):
        store.append(row)
    assert store.get(RunInfo) == info()


def test_an_append_is_atomic(store: AnyStore) -> None:
    store.append(proposal(1))
    with pytest.raises(StoreError, match="the proposal of trial 1 is already stored"):
        store.append(reply(5), proposal(5), proposal(1), verdict(5))
    assert store.get(ReplyRow, 5) is None
    assert [trial for trial, _ in store.trials()] == [1]
    store.append(reply(5), proposal(5), verdict(5))
    assert [trial for trial, _ in store.trials()] == [1, 5]


def test_a_key_twice_in_one_append_is_refused(store: AnyStore) -> None:
    with pytest.raises(StoreError, match="reply 0 of trial 4 is already stored"):
        store.append(reply(4), reply(4))
    assert store.get(ReplyRow, 4) is None


def test_a_verdict_needs_a_proposal(store: AnyStore) -> None:
    with pytest.raises(
        StoreError,
        match="verdict 0 of trial 9 cannot be stored: a verdict needs the proposal of its trial",
    ):
        store.append(verdict(9))
    assert store.last_trial() is None


def test_requests_failures_and_changes_come_back_as_they_went_in(store: AnyStore) -> None:
    store.append(request(3), request(3, 1, turn=1), failure(3, 1), change(0), change(1))
    assert store.get(RequestRow, 3, 1) == request(3, 1, turn=1)
    assert store.get(RequestRow, 3, 1).sent == "2026-01-02T03:04:05+00:00"
    assert store.get(FailureRow, 3, 1) == failure(3, 1)
    assert store.get(ChangeRow, 0, 1) == change(1)
    assert (store.get(RequestRow, 3, 2), store.get(FailureRow, 3), store.get(ChangeRow, 0, 2)) == (
        None,
        None,
        None,
    )
    assert list(store.trials()) == [], "a request is no trial yet"


def test_a_failure_needs_a_request(store: AnyStore) -> None:
    with pytest.raises(
        StoreError,
        match=r"the failure of request 0 of trial 9 cannot be stored: .*a failure its request",
    ):
        store.append(failure(9))


def test_a_verdict_keeps_when_it_was_begun_and_found(store: AnyStore) -> None:
    row = VerdictRow(
        1, 0, verdict(1).verdict, "2026-01-02T03:04:05.006+00:00", "2026-01-02T03:04:06.007+00:00"
    )
    store.append(proposal(1), row)
    found = store.get(VerdictRow, 1)
    assert (found.began, found.ended) == (row.began, row.ended)


def test_requests_without_a_reply_count_as_possibly_paid_unless_they_are_known_to_be_free(
    store: AnyStore,
) -> None:
    assert store.spent().unanswered == Unanswered()
    store.append(request(1), failure(1, maybe_paid=False))  # refused: free
    store.append(request(1, 1), failure(1, 1), request(1, 2), reply(1))  # cut off, then answered
    store.append(request(1, 3, turn=1))  # the repair turn: nobody knows what became of it
    store.append(request(2, most_usd=None))  # a price that nobody knows
    store.append(request(2, 1, most_tokens=None))  # of an earlier version
    assert store.spent().unanswered == Unanswered(
        requests=4, most_usd=1.5, unpriced=1, most_tokens=2700, uncounted=1
    )


@pytest.mark.parametrize("kind", list(EndKind))
def test_an_end_comes_back_as_it_went_in_and_is_stored_once(store: AnyStore, kind: EndKind) -> None:
    store.append(end(0), end(1, kind))
    assert (store.get(EndRow), store.get(EndRow, 0, 1)) == (end(0), end(1, kind))
    assert store.get(EndRow, 0, 2) is None
    with pytest.raises(StoreError, match="end 1 of the run is already stored"):
        store.append(end(1))


@pytest.mark.parametrize("result", list(RaceResult))
def test_a_race_comes_back_as_it_went_in(store: AnyStore, result: RaceResult) -> None:
    row = race(2, 1, holder=1, result=result)
    store.append(proposal(1), proposal(2), race(2, 0, holder=1), row)
    found = store.get(RaceRow, 2, 1)
    assert found == row
    assert (found.began, found.ended) == (row.began, row.ended)
    assert store.get(RaceRow, 2, 2) is None and store.get(RaceRow, 1) is None


@pytest.mark.parametrize(
    ("trial", "holder", "stored"), [(9, 1, 1), (1, 9, 1)], ids=["the newcomer", "the holder"]
)
def test_a_race_needs_the_proposals_of_both_trials(
    store: AnyStore, trial: int, holder: int, stored: int
) -> None:
    store.append(proposal(stored))
    with pytest.raises(
        StoreError,
        match=rf"race 0 of trial {trial} cannot be stored: .*, a race those of both trials",
    ):
        store.append(race(trial, holder=holder))
    assert store.get(RaceRow, trial) is None
    assert [summary.races for _, summary in store.trials()] == [()]


def test_trials_come_with_their_races_in_the_order_in_which_they_were_run(store: AnyStore) -> None:
    store.append(*(proposal(trial) for trial in range(5)))
    void, won, lost = RaceResult.void, RaceResult.won, RaceResult.lost
    store.append(race(4, 0, holder=3, result=void))
    store.append(race(3, 0, holder=1, result=lost))
    store.append(race(4, 1, holder=3, result=won), race(4, 2, holder=0, result=lost))
    races = {trial: summary.races for trial, summary in store.trials()}
    assert races == {
        0: (),
        1: (),
        2: (),
        3: (PastRace(1, lost),),
        4: (PastRace(3, void), PastRace(3, won), PastRace(0, lost)),
    }
    assert [summary.races for _, summary in store.trials(4)] == [races[4]]


@pytest.mark.parametrize("whether", [True, False, None])
def test_a_first_verdict_keeps_whether_its_trial_is_to_be_verified(
    store: AnyStore, whether: bool | None
) -> None:
    row = verdict(1) if whether is None else promising(verdict(1), whether)
    store.append(proposal(1), row, verdict(1, VERIFY))
    assert store.get(VerdictRow, 1, FIRST) == row
    assert store.get(VerdictRow, 1, FIRST).promising is whether
    assert store.get(VerdictRow, 1, VERIFY).promising is None
    assert [summary.promising for _, summary in store.trials()] == [whether]


def test_a_final_verdict_comes_back_and_counts_for_nothing(store: AnyStore) -> None:
    store.append(proposal(1), promising(verdict(1)), verdict(1, VERIFY))
    before, counts = list(store.trials()), store.counts()
    final = verdict(1, FINAL, Status.crash)
    store.append(final)
    assert store.get(VerdictRow, 1, FINAL) == final
    assert (list(store.trials()), store.counts()) == (before, counts)


def test_trials_come_in_order_with_both_outcomes(store: AnyStore) -> None:
    store.append(proposal(2), verdict(2), verdict(2, 1, Status.crash))
    store.append(proposal(0), verdict(0, 0, Status.wrong_result))
    store.append(reply(3))
    store.append(proposal(1, None))
    found = dict(store.trials())
    assert list(found) == [0, 1, 2, 3]
    assert found[3] == TrialSummary(proposed=False, outcome=None, verified=None)
    assert found[1] == TrialSummary(proposed=True, outcome=None, verified=None)
    first, second = found[2].outcome, found[2].verified
    assert first and second and found[0].outcome
    assert (first.trial, first.operator, first.parents, first.label) == (2, "tune", (0,), "kernel")
    assert first.source_digest == digest(SOURCE)
    assert first.tunables == {"BLOCK_M": 64, "WARPS": 2}
    assert (first.status, first.reason, first.tier, first.code_digest) == (
        Status.correct,
        "correct in round 0",
        "fp16",
        "code2",
    )
    assert (first.score, first.latency_us) == (
        verdict(2).verdict.score,
        verdict(2).verdict.latency_us,
    )
    assert (second.status, second.score) == (Status.crash, None)
    assert found[0].outcome.status is Status.wrong_result


def test_trials_start_where_asked(store: AnyStore) -> None:
    for trial in range(5):
        store.append(proposal(trial))
    assert [trial for trial, _ in store.trials(3)] == [3, 4]
    assert list(store.trials(5)) == []


def test_a_trial_without_a_candidate_has_no_digest(store: AnyStore) -> None:
    store.append(proposal(0, None), verdict(0, 0, Status.rejected))
    (_, summary), *_ = store.trials()
    assert summary.outcome
    assert summary.outcome.source_digest == ""


def test_a_score_that_is_nan_is_no_score(store: AnyStore) -> None:
    row = verdict(0)
    assert row.verdict.score
    broken = row.verdict.score.model_copy(update={"low": float("nan")})
    store.append(proposal(0), VerdictRow(0, 0, row.verdict.model_copy(update={"score": broken})))
    (_, summary), *_ = store.trials()
    assert summary.outcome
    assert summary.outcome.score is None
    assert summary.outcome.latency_us == row.verdict.latency_us


def test_sums_over_the_run(store: AnyStore) -> None:
    assert (store.spent().usage, store.counts(), store.last_trial()) == (Usage(), {}, None)
    store.append(reply(0), reply(0, 1), reply(7))
    store.append(
        proposal(0),
        verdict(0),
        proposal(1),
        verdict(1),
        verdict(1, 1),
        proposal(2),
        verdict(2),
        verdict(2, 1, Status.crash),
    )
    store.append(proposal(3), verdict(3, 0, Status.timeout), proposal(4))
    assert store.spent().usage == Usage(prompt_tokens=300, completion_tokens=37, cost_usd=0.75)
    assert store.counts() == {Status.correct: 2, Status.unstable: 1, Status.timeout: 1}
    assert list(store.counts()) == [Status.correct, Status.unstable, Status.timeout]
    assert store.last_trial() == 7
