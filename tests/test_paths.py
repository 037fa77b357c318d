from __future__ import annotations

from pathlib import Path

import pytest

from evoengine import paths
from evoengine.errors import CandidateError, TaskError
from evoengine.paths import RunPaths


def test_what_is_packaged_is_found_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert paths.find_task("sdpa_l4") == paths.tasks_dir() / "sdpa_l4.yaml"
    assert (
        paths.find_kernel("sdpa_v2b")
        == paths.find_kernel("sdpa_v2b.cu")
        == paths.seeds_dir() / "sdpa_v2b.cu"
    )
    assert paths.find_kernel("seeds/sdpa_v2b.cu") == paths.seeds_dir() / "sdpa_v2b.cu"
    assert (paths.prompts_dir() / "first.jinja").is_file()


def test_a_file_of_the_user_comes_before_a_packaged_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sdpa_l4").write_text("")
    (tmp_path / "tasks").mkdir()
    (tmp_path / "sdpa_v2b.cu").write_text("")
    assert paths.find_task("sdpa_l4") == Path("sdpa_l4")
    assert paths.find_kernel("sdpa_v2b.cu") == Path("sdpa_v2b.cu")
    monkeypatch.chdir("/")
    assert paths.find_kernel("sdpa_v2b.cu", beside=tmp_path) == tmp_path / "sdpa_v2b.cu"
    assert paths.find_kernel("sdpa_v2b.cu", beside=tmp_path / "tasks") == tmp_path / "sdpa_v2b.cu"


def test_an_unknown_name_is_answered_with_the_known_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(
        TaskError,
        match=(
            r"no task 'sdpa_l5'; did you mean 'sdpa_l4'[?] known: adamw, embedding_bag, layernorm,"
            r" matmul_fp16, sdpa_h200, sdpa_l4"
        ),
    ):
        paths.find_task("sdpa_l5")
    with pytest.raises(TaskError, match="no task 'zzz'; known: adamw"):
        paths.find_task("zzz")
    with pytest.raises(
        CandidateError,
        match=r"no kernel 'sdpa_v2bb.cu'; did you mean 'sdpa_v2b'[?] packaged seeds: adamw, ",
    ):
        paths.find_kernel("sdpa_v2bb.cu")


@pytest.mark.parametrize("name", ["x" * 5000, "a\0b", "", ".", "/"])
def test_a_name_that_no_file_can_have_is_just_unknown(name: str) -> None:
    with pytest.raises(TaskError, match="no task"):
        paths.find_task(name)
    with pytest.raises(CandidateError, match="no kernel"):
        paths.find_kernel(name, beside=Path("/"))


def test_the_cache_goes_where_the_environment_says() -> None:
    assert paths.cache_dir({"EVOENGINE_CACHE_DIR": "/c", "XDG_CACHE_HOME": "/x"}) == Path("/c")
    assert paths.cache_dir({"XDG_CACHE_HOME": "/x"}) == Path("/x/evoengine")
    assert paths.cache_dir({}) == Path.home() / ".cache" / "evoengine"


def test_everything_of_a_run_is_in_its_folder() -> None:
    run = RunPaths(Path("runs/a"))
    places = [run.database, run.lock, run.config, run.elite("fp16", 1), run.trial(7)]
    assert [str(place.relative_to("runs/a")) for place in places] == [
        "run.db",
        "run.lock",
        "config.yaml",
        "elites/fp16/1",
        "trials/7",
    ]
