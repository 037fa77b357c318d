"""A sample repeats with its seed, has every kind and every change, and a run says what it left
out.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import settings

from tests.sampling import (
    APART,
    EXAMPLES,
    LARGE,
    OF_ALL,
    ROOT,
    VARIABLE,
    Entry,
    Sampling,
    changed_files,
    examples,
)

ENTRIES = [Entry(n, (f"kind {n % 7}", n > 95), (Path(f"/corpus/{n}.cu"),)) for n in range(100)]
MODULE = """
import pytest

@pytest.mark.sampled("number", one_in=10, kind=lambda number: number % 3)
@pytest.mark.parametrize("number", range(100))
@pytest.mark.parametrize("letter", "ab")
def test_number(letter, number):
    print(f"ran {letter}{number}.")

def test_sampling(sampling):
    print(f"count {sampling.count(50, 12)}.")
"""


def test_a_sample_has_a_third_of_the_examples_of_hypothesis() -> None:
    """The profile of this process decides, which is that of a sample or of a run of everything."""
    profile = settings.default.max_examples
    assert examples(300) == 2 * profile and examples(EXAMPLES["whole"]) == profile
    assert EXAMPLES["whole"] == 3 * EXAMPLES["sample"]


def numbers(sampling: Sampling, count: int = 20, corpus: str = "numbers") -> list[int]:
    return [entry.name for entry in sampling.draw(corpus, ENTRIES, count)]


def test_a_sample_repeats_with_its_seed_and_only_with_it() -> None:
    drawn = numbers(Sampling(1, False, frozenset()))
    assert drawn == sorted(drawn) and len(drawn) == 20
    assert drawn == numbers(Sampling(1, False, frozenset()))
    assert drawn != numbers(Sampling(2, False, frozenset()))
    assert drawn != numbers(Sampling(1, False, frozenset()), corpus="others")


@pytest.mark.parametrize("seed", range(20))
def test_a_sample_has_every_kind_however_small_it_is(seed: int) -> None:
    drawn = numbers(Sampling(seed, False, frozenset()), count=1)
    assert {number % 7 for number in drawn} == set(range(7))
    assert {number > 95 for number in drawn} == {True, False}
    assert len(drawn) <= 8


def test_what_changed_is_in_every_sample() -> None:
    changed = {3, 50, 51, 99}
    sampling = Sampling(5, False, frozenset(Path(f"/corpus/{n}.cu") for n in changed))
    assert changed <= set(numbers(sampling))
    assert len(numbers(sampling)) == 20


def test_a_whole_run_draws_nothing() -> None:
    assert numbers(Sampling(5, True, frozenset()), count=1) == list(range(100))
    assert Sampling(5, True, frozenset()).count(50, 12) == 50


UNSAMPLED = "tests/evaluate/repair/test_changes_of_parts.py::test_every_kind_has_words_of_its_own"


def touching(*names: str) -> Sampling:
    return Sampling(5, False, frozenset(ROOT / name for name in names))


def test_folders_that_stand_apart_are_untouched_until_a_file_that_they_depend_on_changes() -> None:
    assert touching("README.md", "evoengine/evaluate/hidden_case.py").untouched == list(APART)
    for folder, sources in APART.items():
        for name in (folder, *sources):
            assert folder not in touching(f"{name}/some.py").untouched
    for name in OF_ALL:
        assert touching(name).untouched == [] and (ROOT / name).exists()
    assert Sampling(5, False, frozenset(), "not known").untouched == []


def test_tests_and_sources_of_folders_that_stand_apart_exist() -> None:
    assert all((ROOT / name).is_dir() for name in APART)
    assert all((ROOT / name).is_dir() for sources in APART.values() for name in sources)


def collected(folder: str, *changes: str) -> list[set[str]]:
    """What a run would collect of a folder, by the change that it knows of."""
    found, alone = [], {**os.environ, "PYTHONPATH": str(ROOT), VARIABLE: "7"}
    for changed in changes:
        script = (
            "import sys, pytest, tests.sampling as s;"
            f"s.changed_files = lambda: frozenset([s.ROOT / {changed!r}]);"
            f"sys.exit(pytest.main(['--collect-only', '-q', '-W', 'ignore', {folder!r}]))"
        )
        done = subprocess.run(
            [sys.executable, "-c", script], cwd=ROOT, env=alone, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
        found.append({line for line in done.stdout.splitlines() if "::" in line})
    return found


def test_a_fifth_of_an_untouched_folder_is_run_and_each_of_its_files() -> None:
    some, every = collected("tests/emulator/run", "README.md", "evoengine/emulator/device.py")
    assert some < every and len(every) / 5 <= len(some) < len(every) / 3
    assert {line.split("::")[0] for line in some} == {line.split("::")[0] for line in every}


def test_of_a_large_folder_that_is_touched_a_third_is_run_and_all_of_a_file_that_changed() -> None:
    (folder,) = LARGE
    file = f"{folder}/test_order_changes.py"
    untouched, touched, changed = collected(
        folder, "README.md", "evoengine/evaluate/repair/change_order.py", file
    )
    assert len(untouched) < len(touched) / 1.5
    assert 0.95 < len(touched) / len(changed) <= 1
    for lines in (untouched, touched, changed):
        assert UNSAMPLED in lines
    here = {line for line in changed if line.startswith(file)}
    assert {line for line in touched if line.startswith(file)} < here
    assert len(here) > 2 * len({line for line in touched if line.startswith(file)})


@pytest.fixture
def module(tmp_path: Path) -> Path:
    path = tmp_path / "test_numbers.py"
    path.write_text(MODULE)
    return path


def ran(module: Path, *arguments: str, seed: str = "") -> tuple[set[str], str]:
    """What a run of the module's tests has printed in them, and its whole output."""
    # other plugins take most of the start
    alone = {"PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    environment = {**os.environ, **alone}
    environment.pop(VARIABLE, None)
    environment |= {VARIABLE: seed} if seed else {}
    command = [sys.executable, "-m", "pytest", "-p", "tests.sampling", "-p", "xdist"]
    command += ["-rP", "-p", "no:cacheprovider", f"--rootdir={module.parent}", *arguments]
    done = subprocess.run(
        command, cwd=module.parent, env=environment, capture_output=True, text=True, check=False
    )
    return set(re.findall(r"(?:ran|count) (\w+)\.", done.stdout)), done.stdout + done.stderr


def test_a_run_says_its_seed_and_what_it_left_out_and_can_be_repeated(module: Path) -> None:
    drawn, output = ran(module, str(module))
    found = re.search(r"sample: seed (\d+), ", output)
    assert found, output
    assert len(drawn) == 21 and "12" in drawn
    assert {name[1:] for name in drawn if name[0] == "a"} == {
        name[1:] for name in drawn if name[0] == "b"
    }
    assert "180 tests left out by the sample" in output and "180 deselected" in output
    assert ran(module, str(module), f"--sample-seed={found[1]}")[0] == drawn


def test_processes_side_by_side_draw_one_sample_and_count_it_once(module: Path) -> None:
    drawn, output = ran(module, "-n", "2", str(module), seed="4")
    assert len(drawn) == 21, output
    assert "180 tests left out by the sample: seed 4" in output
    assert drawn == ran(module, str(module), seed="4")[0]


@pytest.mark.parametrize(
    "arguments", [["--whole"], ["-k", "test_number or sampling"], ["test_numbers.py::test_number"]]
)
def test_a_run_of_everything_or_of_named_tests_leaves_none_out(
    module: Path, arguments: list[str]
) -> None:
    drawn, output = ran(module, *arguments)
    assert {f"a{n}" for n in range(100)} <= drawn, output
    assert "left out" not in output


def test_a_seed_that_is_no_number_is_refused(module: Path) -> None:
    _, output = ran(module, str(module), seed="soon")
    assert f"{VARIABLE} must be a whole number, got 'soon'" in output


def git(folder: Path, *arguments: str) -> None:
    who = ("-c", "user.name=n", "-c", "user.email=e")
    command = ["git", *who, *arguments]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)


def test_changed_files_are_those_since_the_branch_left_main_or_of_the_last_commit(
    tmp_path: Path,
) -> None:
    root = tmp_path.resolve()
    git(root, "init", "-q", "-b", "main")
    for name in ("first", "second", "third"):
        root.joinpath(name).write_text(name)
        git(root, "add", name)
        git(root, "commit", "-q", "-m", name)
    assert changed_files(root) == {root / "third"}
    git(root, "checkout", "-q", "-b", "other", "HEAD^")
    assert changed_files(root) == {root / "second"}, "all of it is in main"
    root.joinpath("fourth").write_text("4")
    git(root, "add", "fourth")
    git(root, "commit", "-q", "-m", "fourth")
    root.joinpath("first").write_text("changed")
    root.joinpath("a new one").write_text("5")
    assert changed_files(root) == {root / "first", root / "fourth", root / "a new one"}


def test_without_a_checkout_it_is_not_known_what_changed(tmp_path: Path) -> None:
    with pytest.raises((OSError, subprocess.CalledProcessError)):
        changed_files(tmp_path)
