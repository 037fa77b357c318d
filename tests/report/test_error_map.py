"""The map of an error: as SVG beside a trial, and in a terminal."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree

from rich.console import Console

from evoengine.records import Diagnosis, DiagnosisKind, ErrorMap, Forensics
from evoengine.report.error_map import COLOURS, colour_of, svg_of, terminal_map
from evoengine.report.forensics_section import forensics_section

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
    problem="the search for its cause ended after 4 s",
)


def test_the_svg_is_xml_with_the_axes_and_a_colour_for_each_cell() -> None:
    text = svg_of(FOUND, "trial <7>")
    root = ElementTree.fromstring(text)  # noqa: S314 - our own text
    said = " ".join(root.itertext())
    assert "trial <7>: error of out in case plain, normal inputs" in said
    assert "columns: D, 0 to 63; rows: B x S, 0 to 95" in said
    assert "out is 1/32 times" in said
    fills = [rect.get("fill") for rect in root.iter("{http://www.w3.org/2000/svg}rect")]
    assert {COLOURS[0], COLOURS[9], colour_of("x"), colour_of("!"), colour_of(".")} <= set(fills)


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
    assert "the search for its cause ended after 4 s" in said
