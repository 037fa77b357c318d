from __future__ import annotations

import json
from pathlib import Path

import pytest

from evoengine.candidate import kernel_file
from evoengine.errors import StoreError
from evoengine.evaluate.scripted.scripted_executor import SCRIPTED_GPU
from evoengine.events import Event, Notice, RunStarted, TrialSettled
from evoengine.paths import RunPaths
from evoengine.protocols import VerdictRow
from evoengine.records import Elite
from evoengine.report.files import RunFolderFiles
from evoengine.report.live_files import LiveFiles
from evoengine.report.stored_trials import StoredTrials
from evoengine.store.memory_store import MemoryStore
from tests.report.stored_run import fill, proposals, run_info
from tests.scale_task import load_scale_task, write_task


@pytest.fixture
def scene(tmp_path: Path) -> tuple[RunPaths, MemoryStore, tuple[Elite, ...], RunFolderFiles]:
    task = load_scale_task(tmp_path / "tasks")
    store, info = MemoryStore(), run_info(task, write_task(tmp_path / "tasks"))
    elites = fill(store, info, proposals())
    paths = RunPaths(tmp_path / "runs" / "one")
    return paths, store, elites, RunFolderFiles(paths, store, info)


def read(path: Path) -> dict:
    return json.loads(path.read_text())


def tree(root: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(root)): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file()
    }


def test_elite_folder_holds_what_the_store_holds(scene) -> None:
    paths, store, elites, exports = scene
    exports.write_elites(elites)
    assert len(elites) > 2
    for elite in elites:
        folder, number = paths.elite(elite.tier, elite.place), elite.outcome.trial
        verdict = StoredTrials(store).verdict_of(number)
        # the verification counts
        assert verdict == store.get(VerdictRow, number, 1).verdict
        assert {path.name for path in folder.iterdir()} == {
            "kernel.cu", "plan.json", "verdict.json", "samples.json", "resources.json",
            "environment.json", "lineage.json",
        }  # fmt: skip
        assert read(folder / "samples.json")["timings"] == json.loads(
            json.dumps([item.model_dump(mode="json") for item in verdict.timings])
        )
        assert read(folder / "environment.json")["environment"] == SCRIPTED_GPU.model_dump(
            mode="json"
        )
        assert read(folder / "verdict.json")["status"] == "correct"
        assert [item["case"] for item in read(folder / "verdict.json")["checks"]] == [
            "small",
            "large",
            "odd",
        ]
        assert read(folder / "resources.json")["registers"] == 40


def test_exported_kernel_has_the_measured_tunables_as_its_defaults(scene) -> None:
    paths, _, elites, exports = scene
    exports.write_elites(elites)
    tuned = [elite for elite in elites if elite.outcome.tunables]
    assert tuned
    for elite in tuned:
        folder = paths.elite(elite.tier, elite.place)
        again = kernel_file.parse((folder / "kernel.cu").read_text())
        assert again.tunables == elite.outcome.tunables
        plan = read(folder / "plan.json")
        assert plan["tunables"] == elite.outcome.tunables
        assert set(plan["cases"]) == {"small", "large"}
        assert plan["cases"]["large"]["launches"][0]["block"] == [elite.outcome.tunables["BLOCK"]]


def test_lineage_goes_back_to_the_seed(scene) -> None:
    paths, _, elites, exports = scene
    exports.write_elites(elites)
    elite = next(elite for elite in elites if elite.outcome.operator == "tune")
    chain = read(paths.elite(elite.tier, elite.place) / "lineage.json")["lineage"]
    assert [item["trial"] for item in chain] == [elite.outcome.trial, 0]
    assert [item["operator"] for item in chain] == ["tune", "seed"]
    assert chain[0]["tunables"] == elite.outcome.tunables and chain[0]["score"] is not None


def test_places_without_an_elite_are_removed(scene) -> None:
    paths, _, elites, exports = scene
    exports.write_elites(elites)
    (paths.elites / "fp64" / "1").mkdir(parents=True)
    left = [elite for elite in elites if elite.tier == "fp32" and elite.place == 1]
    exports.write_elites(left)
    assert sorted(str(path.relative_to(paths.elites)) for path in paths.elites.glob("*/*")) == [
        "fp32/1"
    ]
    assert [path.name for path in paths.elites.iterdir()] == ["fp32"]


def test_a_place_with_a_new_elite_shows_only_that_elite(scene) -> None:
    paths, _store, elites, exports = scene
    first, second = [elite for elite in elites if elite.tier == "fp32"][:2]
    exports.write_elites([first])
    (paths.elite("fp32", 1) / "notes.txt").write_text("by hand")
    exports.write_elites([second.model_copy(update={"place": 1})])
    assert read(paths.elite("fp32", 1) / "verdict.json")["trial"] == second.outcome.trial
    assert not (paths.elite("fp32", 1) / "notes.txt").exists()
    assert [path.name for path in (paths.elites / "fp32").iterdir()] == ["1"]


def test_deleted_exports_are_rebuilt_the_same(scene, tmp_path: Path) -> None:
    paths, store, elites, exports = scene
    for target in (
        exports,
        RunFolderFiles(
            RunPaths(tmp_path / "again"),
            store,
            run_info(load_scale_task(tmp_path / "tasks"), write_task(tmp_path / "tasks")),
        ),
    ):
        target.write_config()
        target.write_elites(elites)
        for number in range(7):
            target.write_trial(number)
    assert tree(paths.root) == tree(tmp_path / "again")


@pytest.mark.parametrize("tier", ["../up", "..", "a/b", "", "fp16\n", "/abs"])
def test_tier_that_leads_out_of_the_folder_is_refused(scene, tier: str, tmp_path: Path) -> None:
    _paths, _, elites, exports = scene
    before = tree(tmp_path)
    with pytest.raises(StoreError, match="plain folder name, got"):
        exports.write_elites([elites[0].model_copy(update={"tier": tier})])
    assert tree(tmp_path) == before


def test_link_in_the_place_of_a_folder_is_removed_and_what_it_points_to_is_kept(
    scene, tmp_path: Path
) -> None:
    paths, _, elites, exports = scene
    outside = tmp_path / "outside"
    (outside / "1").mkdir(parents=True)
    (outside / "1" / "precious").write_text("keep")
    paths.elites.mkdir(parents=True)
    (paths.elites / "fp64").symlink_to(outside)
    exports.write_elites(elites)
    assert not (paths.elites / "fp64").exists()
    assert (outside / "1" / "precious").read_text() == "keep"


def test_trial_folder_holds_prompt_reply_kernel_and_both_verdicts(scene) -> None:
    paths, _store, elites, exports = scene
    for number in range(7):
        assert not exports.has_trial(number)
        exports.write_trial(number)
        assert exports.has_trial(number)
    assert (paths.trial(6) / "prompt.md").read_text() == "what?"
    assert (
        paths.trial(6) / "reply.md"
    ).read_text() == "this ? one"  # half a surrogate pair is no text
    assert read(paths.trial(6) / "verdict.json")["proposal"]["insight"] == "wider loads"
    assert not (paths.trial(5) / "kernel.cu").exists()
    assert read(paths.trial(5) / "verdict.json")["verdict"]["reason"] == "the reply holds no kernel"
    held = elites[0].outcome.trial
    assert (paths.trial(held) / "verdict_first.json").exists()


def test_trial_without_a_verdict_gets_no_folder(scene) -> None:
    paths, _, _, exports = scene
    exports.write_trial(99)
    assert not paths.trial(99).exists()


def settled(store: MemoryStore, elites: tuple[Elite, ...]) -> list[Event]:
    return [
        TrialSettled(summary.outcome.after(summary.verified), None, elites)
        for _, summary in store.trials()
    ]


def test_exporter_follows_a_run(scene, tmp_path: Path) -> None:
    paths, store, elites, _ = scene
    info = run_info(load_scale_task(tmp_path / "tasks"), write_task(tmp_path / "tasks"))
    said: list[Event] = []
    exporter = LiveFiles(paths, lambda: store, said.append)
    for event in [RunStarted(info, SCRIPTED_GPU, 8, 0, False), *settled(store, elites)]:
        exporter(event)
    assert said == []
    assert sorted(int(path.name) for path in (paths.root / "trials").iterdir()) == list(range(7))
    assert {(path.parent.name, path.name) for path in paths.elites.glob("*/*")} == {
        (elite.tier, str(elite.place)) for elite in elites
    }
    assert paths.config.read_text().startswith("# run one, begun 2025-11-21")


def test_exports_that_cannot_be_written_are_reported_once_and_end_nothing(
    scene, tmp_path: Path
) -> None:
    paths, store, elites, _ = scene
    paths.root.mkdir(parents=True)
    (paths.root / "trials").write_text("a file where a folder should be")
    said: list[Event] = []
    exporter = LiveFiles(paths, lambda: store, said.append)
    info = run_info(load_scale_task(tmp_path / "tasks"), write_task(tmp_path / "tasks"))
    for event in [RunStarted(info, SCRIPTED_GPU, 8, 0, False), *settled(store, elites)]:
        exporter(event)
    assert [type(event) for event in said] == [Notice]
    assert "no longer updated" in said[0].text and "evoengine export" in said[0].text
