"""What a person sees of a run on the emulator: modelled times, called so, and nothing that looks
measured.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from evoengine.config import CHECKS, RunConfig
from evoengine.emulator.timing_model.combination import BOUNDS, IN_FULL
from evoengine.errors import DeviceError, UsageError
from evoengine.evaluate.device_choice import DeviceChoice
from evoengine.evaluate.scripted.scripted_executor import SCRIPTED_EMULATOR, SCRIPTED_GPU
from evoengine.paths import RunPaths
from evoengine.records import RunInfo
from evoengine.search import resume_run
from evoengine.search.choose_run import parse_checks
from evoengine.store.run_folder import open_run
from tests.cli.conftest import Call
from tests.report.stored_run import run_info
from tests.scale_task import load_scale_task, write_task

ON_EMULATOR = DeviceChoice(None, "l4", "kernels run on an emulator")


@pytest.fixture
def run(emulated: Call, task: Path) -> Call:
    assert emulated("run", task, "--run", "one", "--trials", "14", "--seed", "3").code == 0
    return emulated


def test_the_first_lines_say_what_replaces_a_gpu(emulated: Call, task: Path) -> None:
    found = emulated("run", task, "--run", "one", "--trials", "8", "--seed", "3")
    lines = found.err.splitlines()
    assert lines[0] == "note: kernels run on an emulator"
    started = next(line for line in lines if line.startswith("run one started"))
    assert "device emulator:l4 NVIDIA L4 (modelled on 2 cores)" in started
    correct = [line for line in lines if "  correct  " in line]
    assert correct and all("us (modelled)" in line and "the first seed" in line for line in correct)


def test_tables_show_modelled_times_and_no_baseline(run: Call) -> None:
    shown = run("show", "one").out
    assert (
        "modelled us" in shown
        and "vs first seed" in shown
        and "limited by" in shown
        and "tensor" in shown
    )
    assert "they give no speed-up against a library" in shown
    assert "speed-up  " not in shown and "torch.mul" not in shown


def test_json_has_modelled_times_and_no_speedup(run: Call) -> None:
    rows = json.loads(run("show", "one", "--json").out)
    assert rows["modelled"] is True and rows["baselines"] == {}
    correct = [row for row in rows["trials"] if row["status"] == "correct"]
    assert correct and all(
        row["speedup"] is None and row["modelled"] and row["vs_first"] for row in correct
    )
    first = {row["tier"]: row for row in reversed(correct)}
    assert all(row["vs_first"] == 1.0 for row in first.values())
    assert all(elite["limiter"] == "tensor" for elite in rows["elites"])


def test_one_trial_shows_bounds_and_what_checked_mode_followed(run: Call) -> None:
    rows = json.loads(run("show", "one", "--json").out)
    trial = next(
        row["trial"]
        for row in rows["trials"]
        if row["status"] == "correct" and row["place"] is None
    )
    shown = run("show", "one", "--trial", trial).out
    assert (
        "modelled time" in shown
        and "checked mode: every memory access is followed" in shown
        and "8 of 32" in shown
    )
    words = " ".join(shown.split())
    assert IN_FULL in words
    assert f"tensor: {BOUNDS['tensor']}" in words  # a bound that the table shows
    assert words.count("dispatch: ") == 0  # and none that it does not
    assert (
        "bounds, us" in shown
        and "tensor" in shown
        and "the median with its 95 % interval" not in shown
    )


def test_an_elites_files_say_modelled(run: Call) -> None:
    for file in Path("runs/one/elites").glob("*/*/verdict.json"):
        found = json.loads(file.read_text())
        assert found["modelled"] is True and found["speedup"] is None
        assert [case["modelled_us"] for case in found["cases"] if case["case"] == "large"] != [None]
        assert found["environment"]["kind"] == "emulator"
        assert all(
            ancestor["speedup"] is None
            for ancestor in json.loads((file.parent / "lineage.json").read_text())["lineage"]
        )


def test_resume_is_the_run_that_was_never_stopped(emulated: Call, task: Path) -> None:
    emulated("run", task, "--run", "whole", "--trials", "8", "--seed", "3")
    assert emulated("resume", "whole").code == 0
    assert json.loads(emulated("show", "whole", "--json").out)["settled"] == 8


def test_one_verdict_comes_with_one_short_line_about_the_emulator(
    emulated: Call, task: Path
) -> None:
    found = emulated("evaluate", "scale_a.cu", "--task", task)
    assert [line for line in found.err.splitlines() if "emulat" in line] == ["note: emulated"]


def test_a_map_that_there_is_none_of_is_not_written_and_a_line_says_why(
    emulated: Call, task: Path, tmp_path: Path
) -> None:
    earlier = tmp_path / "map.svg"
    earlier.write_text("an earlier map")
    found = emulated("evaluate", "scale_a.cu", "--task", task, "--error-map", earlier)
    assert earlier.read_text() == "an earlier map"
    assert f"note: {earlier} was not written: " in found.err
    assert "this verdict is " in found.err


@pytest.mark.parametrize(("device", "environment", "asked"), [
    ("auto", SCRIPTED_EMULATOR, "emulator:l4"),
    ("auto", SCRIPTED_GPU, "cuda"),
    ("emulator:h200", SCRIPTED_EMULATOR, "emulator:h200"),
    ("cuda:1", SCRIPTED_GPU, "cuda:1"),
])  # fmt: skip
def test_a_run_continues_on_the_kind_of_device_that_it_began_on(
    tmp_path: Path, device: str, environment: object, asked: str
) -> None:
    info = info_of(tmp_path, environment)
    config = RunConfig.model_validate({**info.config, "device": device})
    assert resume_run._device_to_request(info, config) == asked


@pytest.mark.parametrize("cores", [2, 16])
def test_a_run_with_the_same_compilers_continues_on_any_number_of_cores(
    tmp_path: Path, cores: int
) -> None:
    """Also one of 0.1.0, which stored the same versions."""
    here = SCRIPTED_EMULATOR.model_copy(
        update={"device": f"emulator:l4 NVIDIA L4 (modelled on {cores} cores)"}
    )
    resume_run.refuse_other_device(info_of(tmp_path, SCRIPTED_EMULATOR), here)
    without = SCRIPTED_EMULATOR.model_copy(
        update={"versions": {"clang": "22.1.8", "torch": "2.13.0"}}
    )
    resume_run.refuse_other_device(info_of(tmp_path, without), without)


BOTH, ALONE = {"clang": "22.1.8", "nvrtc": "13.0"}, {"clang": "22.1.8"}
H200 = "emulator:h200 NVIDIA H200 (modelled on 2 cores)"


@pytest.mark.parametrize(("begun", "here", "says"), [
    ({}, {"device": H200}, "emulator:h200 with clang 22.1.8 and NVRTC 13.0: start a new run"),
    ({}, {"versions": {**BOTH, "clang": "23.1.0"}}, "clang 23.1.0 and NVRTC 13.0: install clang 22.1.8 .* with EVOENGINE_CLANG; or"),
    ({}, {"versions": ALONE}, r"clang 22.1.8 and no NVRTC: install NVRTC 13.0 .*'cuda-toolkit\[nvrtc,cudart,crt,cccl\]==13.0.\*'\); or"),
    ({}, {"versions": {**BOTH, "nvrtc": "13.5"}}, r"and NVRTC 13.5: install NVRTC 13.0 .*; or start a new run"),
    ({"versions": {**BOTH, "nvrtc": "12.9"}}, {}, r"'cuda-toolkit\[nvrtc,cudart,nvcc,cccl\]==12.9.\*'"),
    ({"versions": ALONE}, {}, "and no NVRTC; this machine has .* and NVRTC 13.0: resume in an environment without NVRTC .*; or"),
])  # fmt: skip
def test_a_run_stays_with_its_target_and_its_compilers(
    tmp_path: Path, begun: dict[str, object], here: dict[str, object], says: str
) -> None:
    with pytest.raises(DeviceError, match=rf"^run one began on emulator:l4 with clang .*{says}"):
        resume_run.refuse_other_device(
            info_of(tmp_path, SCRIPTED_EMULATOR.model_copy(update=begun)),
            SCRIPTED_EMULATOR.model_copy(update=here),
        )


def test_a_measured_run_stays_with_its_nvrtc(tmp_path: Path) -> None:
    begun, here = (
        SCRIPTED_GPU.model_copy(update={"versions": {"nvrtc": version}})
        for version in ("13.0", "13.5")
    )
    resume_run.refuse_other_device(info_of(tmp_path, begun), begun)
    with pytest.raises(
        DeviceError,
        match=(
            r"began on Scripted with NVRTC 13\.0; this machine has Scripted with NVRTC 13\.5: install NVRTC"
            r" 13\.0"
        ),
    ):
        resume_run.refuse_other_device(info_of(tmp_path, begun), here)


def info_of(folder: Path, environment: object) -> RunInfo:
    return run_info(load_scale_task(folder), write_task(folder)).model_copy(
        update={"environment": environment.model_dump(mode="json")}
    )  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("text", "names"),
    [(None, CHECKS), ("none", ()), ("async, races", ("races", "async")), ("bounds", ("bounds",))],
)
def test_checks_are_names_with_commas_or_none(text: str | None, names: tuple[str, ...]) -> None:
    assert parse_checks(text, ON_EMULATOR) == parse_checks(text, DeviceChoice(0)) == names


@pytest.mark.parametrize(("text", "chosen", "words"), [
    ("race", ON_EMULATOR, r"no check 'race'; expected none, or some of races,bounds,init,async"),
    ("races", DeviceChoice(None, is_scripted=True), "nothing is checked by --device scripted"),
])  # fmt: skip
def test_an_unknown_check_and_one_of_drawn_verdicts_are_usage_errors(
    text: str, chosen: DeviceChoice, words: str
) -> None:
    with pytest.raises(UsageError, match=words):
        parse_checks(text, chosen)


def test_the_checks_of_a_run_are_stored(emulated: Call, task: Path) -> None:
    emulated("run", task, "--run", "one", "--trials", "2", "--check", "races")
    with open_run(RunPaths(Path("runs/one")), read_only=True) as folder:
        info = folder.store.get(RunInfo)
        assert info is not None and info.config["checks"] == ["races"]
