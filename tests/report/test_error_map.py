"""The map of an error: as SVG beside a trial, and in a terminal."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree

from rich.console import Console

from evoengine.records import Diagnosis, DiagnosisKind, ErrorMap, Forensics
from evoengine.report.error_map import terminal_map
from evoengine.report.error_map_svg import CELL_PX, COLOURS, colour_of, svg_of
from evoengine.report.forensics_section import forensics_section

SVG = "{http://www.w3.org/2000/svg}"
MAP = ErrorMap(
    output="out",
    row_axes=("B", "S"),
    column_axis="D",
    rows=96,
    columns=64,
    cells=("....", ".0.9", "xx!."),
)
FOUND = Forensics(
    case="plain",
    distribution="normal",
    output="out",
    diagnoses=(
        Diagnosis(
            kind=DiagnosisKind.ratio,
            sentence="out is 1/32 times what it should be (1/the warp size).",
            share=0.98,
            evidence={"ratio": 0.03125, "names": ["1/the warp size"]},
        ),
    ),
    error_map=MAP,
    problem="the search for its cause ended at its limit, 4 s of the processor",
)


def test_the_svg_is_xml_with_the_axes_and_a_colour_for_each_cell() -> None:
    text = svg_of(FOUND, "trial <7>")
    root = ElementTree.fromstring(text)  # noqa: S314 - our own text
    said = " ".join(root.itertext())
    assert "trial <7>: error of out in case plain, normal inputs" in said
    assert "rows: B x S, 0 to 95; columns: D, 0 to 63" in said
    assert "out is 1/32 times" in said
    paths = {path.get("fill"): path.get("d") for path in root.iter(f"{SVG}path")}
    assert paths == {
        colour_of("."): "M0 0h4v1h-4zM0 1h1v1h-1zM2 1h1v1h-1zM3 2h1v1h-1z",
        COLOURS[0]: "M1 1h1v1h-1z",
        COLOURS[9]: "M3 1h1v1h-1z",
        colour_of("x"): "M0 2h2v1h-2z",
        colour_of("!"): "M2 2h1v1h-1z",
    }


def test_single_elements_are_a_second_panel_framed_in_the_first() -> None:
    shown = MAP.model_copy(update={"detail": ("0.",) * 3, "detail_row": 64, "detail_column": 32})
    text = svg_of(FOUND.model_copy(update={"error_map": shown}), "trial 7")
    root = ElementTree.fromstring(text)  # noqa: S314 - our own text
    assert "framed, element by element: rows 64 to 66, columns 32 to 33" in text
    assert len(list(root.iter(f"{SVG}g"))) == 2
    (frame,) = (rect for rect in root.iter(f"{SVG}rect") if rect.get("fill") == "none")
    (first, _) = (group.get("transform", "") for group in root.iter(f"{SVG}g"))
    left, top = map(float, re.findall(r"translate\((\d+) (\d+)\)", first)[0])
    assert float(frame.get("x", 0)) == left + 32 / 64 * 4 * CELL_PX
    assert float(frame.get("y", 0)) == top + 64 / 96 * 3 * CELL_PX


def test_the_largest_map_of_pure_noise_is_a_small_file() -> None:
    cells = tuple(
        "".join(str((7 * row + 3 * column) % 10) for column in range(64)) for row in range(64)
    )
    shown = MAP.model_copy(update={"cells": cells, "detail": cells})
    assert len(svg_of(FOUND.model_copy(update={"error_map": shown}), "trial 7")) < 200_000


def test_a_long_sentence_is_wrapped_within_the_picture() -> None:
    said = FOUND.diagnoses[0].model_copy(update={"sentence": "many words " * 40})
    text = svg_of(FOUND.model_copy(update={"diagnoses": (said,)}), "trial 7")
    root = ElementTree.fromstring(text)  # noqa: S314 - our own text
    lines = ["".join(line.itertext()) for line in root.iter(f"{SVG}text")]
    assert " ".join(lines).count("many words") == 40
    assert max(map(len, lines)) < float(root.get("width", 0)) / 6


def test_without_a_map_there_is_no_picture() -> None:
    assert svg_of(FOUND.model_copy(update={"error_map": None}), "trial 7") == ""


def test_a_terminal_shows_the_worst_of_the_cells_that_it_joins() -> None:
    assert terminal_map(MAP).plain == "....\n.0.9\nxx!."
    tall = MAP.model_copy(update={"cells": ("." * 128,) * 47 + ("." * 127 + "x",)})
    lines = terminal_map(tall).plain.splitlines()
    assert len(lines) == 24
    assert len(lines[0]) == 64
    assert lines[-1] == "." * 63 + "x"
    assert set("".join(lines[:-1])) == {"."}


def test_people_see_every_diagnosis_with_its_evidence() -> None:
    console = Console(width=120, record=True, file=None, force_terminal=False)
    with console.capture() as capture:
        console.print(forensics_section(FOUND))
    said = " ".join(capture.get().split())
    assert "what is wrong in plain: out, normal inputs" in said
    assert "98% ratio out is 1/32 times what it should be (1/the warp size)." in said
    assert "ratio 0.03125" in said
    assert "the search for its cause ended at its limit, 4 s of the processor" in said
