"""The pictures of docs/forensics.md: wrong kernels of the corpora of planted bugs, judged on the
emulator by the command that the page shows: what it prints, and the map of the error it writes.

    python -m benchmarks.forensics_pictures [--only NAME ...] [--out FOLDER] [--kernels FOLDER]

writes NAME-terminal.svg and NAME-map.svg for each; with --kernels the wrong kernels stay in FOLDER,
to judge them by hand. It needs no GPU and takes a minute or two. Times in the pictures are those of
the machine at hand.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.text import Text

from benchmarks.corpora import ROOT
from benchmarks.planted_bugs import BUGS, PlantedBug, bug_manifest
from benchmarks.terminal_svg import svg_of_terminal
from evoengine import atomic_files

OUT = ROOT / "docs" / "images"
SECOND_BUGS = ROOT / "tests" / "bugs_second"
DEVICE = "emulator:h200"
COLUMNS = 110
NOT_CORRECT = 1  # the status of `evoengine evaluate` on a kernel that is not correct
LAST_SECTION = "what is wrong"  # what follows it is not about the wrong result


@dataclass(frozen=True)
class PicturedBug:
    """A wrong kernel of a corpus, and the task as the command names it."""

    corpus: Path
    bug: str
    task: str

    @property
    def planted(self) -> PlantedBug:
        """Its entry in the manifest."""
        return bug_manifest(self.corpus).bugs[self.bug]


PICTURED: Mapping[str, PicturedBug] = {
    "missing-mask": PicturedBug(BUGS, "attention_mask_missing_in_tile", "sdpa_h200"),
    "fragment-layout": PicturedBug(
        SECOND_BUGS, "scores_accumulator_layout", "tests/bugs_second/batched_scores.yaml"
    ),
    "unwritten-tail": PicturedBug(
        SECOND_BUGS, "transpose_grid_rounded_down", "tests/bugs_second/transpose_bias.yaml"
    ),
}


@dataclass(frozen=True)
class Pictures:
    """Of one wrong kernel: the terminal and the map, each the text of an SVG file."""

    terminal: str
    error_map: str


def command_of(name: str) -> list[str]:
    """The command that a person calls in a folder with the kernel, without `evoengine`."""
    task = PICTURED[name].task
    told = ["--task", task, "--device", DEVICE, "--error-map", f"{name}.svg"]
    told += ["--repair", "0"]  # what is found without a change of the source
    return ["evaluate", f"{name}.cu", *told]


def pictures_of(name: str, folder: Path) -> Pictures:
    """Judges the kernel, which is written to `folder`; raises RuntimeError where the command does
    not find a wrong result or gives no map.
    """
    pictured = PICTURED[name]
    folder = folder.resolve()  # the command runs elsewhere
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.cu").write_text(pictured.planted.text(pictured.corpus), encoding="utf-8")
    said = _called(name, folder)
    title = f"evoengine {' '.join(command_of(name))}"
    terminal = svg_of_terminal(_until_diagnosis(said), title, name, COLUMNS)
    return Pictures(terminal, (folder / f"{name}.svg").read_text(encoding="utf-8"))


def _called(name: str, folder: Path) -> str:
    """What the command prints on a terminal, with its colours."""
    words = command_of(name)
    paths = {f"{name}.cu", f"{name}.svg"}
    arguments = [str(folder / word) if word in paths else word for word in words]
    shown_as = {"COLUMNS": str(COLUMNS), "FORCE_COLOR": "1", "TERM": "xterm", "COLORTERM": "24bit"}
    call = [sys.executable, "-m", "evoengine", *arguments]
    environment = {**os.environ, **shown_as}
    done = subprocess.run(  # noqa: S603 - ours
        call, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode != NOT_CORRECT or LAST_SECTION not in done.stdout:
        raise RuntimeError(
            f"{' '.join(call)}: expected status {NOT_CORRECT} and a diagnosis, got"
            f" {done.returncode}: {done.stdout}{done.stderr}"
        )
    return done.stdout


def _until_diagnosis(said: str) -> Text:
    """The sections up to the diagnosis with its map; sections end with an empty line."""
    kept = Text()
    has_diagnosis = False
    for line in Text.from_ansi(said).split("\n"):
        has_diagnosis |= line.plain.startswith(LAST_SECTION)
        if has_diagnosis and not line.plain.strip():
            break
        kept.append_text(line).append("\n")
    kept.rstrip()
    return kept


def _written(names: Sequence[str], out: Path, kernels: Path) -> Iterator[Path]:
    for name in names:
        pictures = pictures_of(name, kernels)
        for kind, text in (("terminal", pictures.terminal), ("map", pictures.error_map)):
            path = out / f"{name}-{kind}.svg"
            atomic_files.write_text(path, text)
            yield path


def main(arguments: Sequence[str] | None = None) -> None:
    """Makes the pictures and prints their sizes."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.forensics_pictures",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--only", nargs="+", choices=tuple(PICTURED), default=tuple(PICTURED))
    parser.add_argument("--out", type=Path, default=OUT, metavar="FOLDER")
    parser.add_argument("--kernels", type=Path, metavar="FOLDER", help="leave the kernels there")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        for path in _written(options.only, options.out, options.kernels or Path(folder)):
            print(f"{path}: {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
