"""The pictures of docs/forensics.md: all are there, small, and made again by the command."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from html import unescape
from pathlib import Path

import pytest

from benchmarks import forensics_pictures
from benchmarks.forensics_pictures import OUT, PICTURED, command_of
from benchmarks.terminal_svg import svg_of_terminal
from evoengine.records import Status

PAGE = OUT.parent / "forensics.md"
KINDS = ("terminal", "map")
MOST_BYTES = 200_000
UNWRITTEN = "unwritten-tail"  # what its map shows does not depend on the inputs


def words_of(svg: str) -> str:
    return unescape(re.sub(r"<[^>]+>", " ", svg)).replace("\xa0", " ")


@pytest.mark.parametrize("name", PICTURED)
def test_the_page_shows_every_picture_and_its_command(name: str) -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert f"evoengine {' '.join(command_of(name))}" in page
    for kind in KINDS:
        picture = OUT / f"{name}-{kind}.svg"
        assert f"](images/{picture.name})" in page
        assert picture.stat().st_size < MOST_BYTES
        ElementTree.parse(picture)  # noqa: S314 - our own text


def test_the_page_names_the_command_that_makes_them() -> None:
    assert "python -m benchmarks.forensics_pictures" in PAGE.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", PICTURED)
def test_the_picture_is_of_the_bug_that_the_manifest_describes(name: str) -> None:
    """By the patterns of the manifest, which were written before any diagnosis."""
    planted = PICTURED[name].planted
    assert planted.emulator is Status.wrong_result
    said = " ".join(words_of((OUT / f"{name}-map.svg").read_text(encoding="utf-8")).split())
    assert planted.is_named_by([said])


@pytest.mark.timeout(300)
def test_the_command_makes_the_committed_map_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kernels = tmp_path / "kernels"
    forensics_pictures.main(
        ["--only", UNWRITTEN, "--out", str(tmp_path), "--kernels", str(kernels)]
    )
    made = {path.name for path in tmp_path.glob("*.svg")}
    assert made == {f"{UNWRITTEN}-{kind}.svg" for kind in KINDS}
    again = (tmp_path / f"{UNWRITTEN}-map.svg").read_text(encoding="utf-8")
    assert again == (OUT / f"{UNWRITTEN}-map.svg").read_text(encoding="utf-8")
    terminal = words_of((tmp_path / f"{UNWRITTEN}-terminal.svg").read_text(encoding="utf-8"))
    for words in ("wrong_result", "never written", "worst error in each cell"):
        assert words in terminal
    assert "machine code" not in terminal
    pictured = PICTURED[UNWRITTEN]
    assert (kernels / f"{UNWRITTEN}.cu").read_text() == pictured.planted.text(pictured.corpus)


def test_a_picture_of_a_terminal_fetches_nothing_from_elsewhere() -> None:
    svg = svg_of_terminal("a line", "a title", "a-name", 40)
    assert "@font-face" not in svg and "url(http" not in svg
    assert "a line" in words_of(svg)
