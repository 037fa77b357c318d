"""The seeds of inputs on the emulator: secret, and the same as long as the cache is."""

from __future__ import annotations

import multiprocessing
from pathlib import Path

import pytest

from evoengine.errors import DeviceError
from evoengine.evaluate.worker.emulated import array_cache
from evoengine.evaluate.worker.emulated.array_cache import ArrayCache, CachedArrays
from evoengine.evaluate.worker.emulated.secret_sets import SEEDS_FILE, read_secret, secret_sets
from tests.small import small_task


@pytest.mark.parametrize("seeds", [(0, 1, 2), (5, 3, 9, 8, 7)])
@pytest.mark.parametrize(
    "distributions", [("normal",), ("normal", "wide"), ("wide", "normal", "outliers", "shifted")]
)
def test_the_sets_of_a_case_use_every_distribution_and_have_different_seeds(
    distributions: tuple[str, ...], seeds: tuple[int, ...]
) -> None:
    task = small_task(distributions=distributions, seeds=seeds)
    found = secret_sets(task, "plain", "a secret")
    assert [one.number for one in found] == list(range(max(len(seeds), len(distributions))))
    assert {one.distribution for one in found} == set(distributions)
    assert len({one.seed for one in found}) == len(found)


def test_seeds_depend_on_the_secret_and_on_the_case_not_on_the_seeds_of_the_task() -> None:
    task = small_task()

    def seeds(case: str, secret: str, **changes: object) -> set[int]:
        return {one.seed for one in secret_sets(small_task(**changes), case, secret)}

    first = seeds("plain", "one")
    assert first == {one.seed for one in secret_sets(task, "plain", "one")}
    assert first == seeds("plain", "one", seeds=(7, 8, 9))
    assert not first & seeds("plain", "two")
    assert not first & seeds("flipped", "one")


def test_each_cache_folder_has_a_secret_of_its_own_which_later_starts_read_again(
    tmp_path: Path,
) -> None:
    first, second = (read_secret(tmp_path / name) for name in ("a", "b"))
    assert len(first) == 32 and first != second
    assert read_secret(tmp_path / "a") == first


def test_processes_that_start_at_the_same_time_read_the_same_secret(tmp_path: Path) -> None:
    with multiprocessing.get_context("fork").Pool(4) as pool:
        assert len(set(pool.map(read_secret, [tmp_path / "new"] * 16, chunksize=1))) == 1
    assert [path.name for path in (tmp_path / "new").iterdir()] == [SEEDS_FILE]


def test_the_secret_stays_when_the_oldest_arrays_are_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(array_cache, "LIMIT_BYTES", 0)
    before = read_secret(tmp_path)
    ArrayCache(tmp_path).write("0" * 32, CachedArrays({}))
    assert [path.name for path in tmp_path.iterdir()] == [SEEDS_FILE]
    assert read_secret(tmp_path) == before


def test_a_folder_that_cannot_be_written_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file")
    with pytest.raises(DeviceError, match=r"seeds of inputs cannot be kept in .*; set EVOENGINE_"):
        read_secret(tmp_path / "cache")
