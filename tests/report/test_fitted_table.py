"""A table at any width: nothing is cut, nothing is lost, no line ends in blanks."""

from __future__ import annotations

import io

import pytest
from rich.console import Console
from rich.text import Text

from evoengine.report.fitted_table import Column, FittedTable, number_column, text_column

NAMES = ("layernorm", "layernorm_with_a_name_that_is_longer_than_any_column")
SETTING = "THREADS=512 VECTOR=1 ROWS_PER_BLOCK=2"
REASON = "case small: 1 of 2 input sets fail, the worst of them by far at y[3]"


def table() -> FittedTable:
    made = FittedTable(
        [
            number_column("trial"),
            text_column("name"),
            text_column("tunables"),
            Column("status"),
            number_column("vs first seed"),
            number_column("us", True),
            text_column("reason", least=32),
        ],
        "trials",
    )
    made.add("0", NAMES[0], "-", Text("correct"), "1.00x", "24.56", "")
    made.add("1", NAMES[1], SETTING, Text("wrong_result"), "-", "-", REASON)
    return made


def lines(made: FittedTable, width: int) -> list[str]:
    console = Console(file=io.StringIO(), width=width, force_terminal=False)
    console.print(made)
    return console.file.getvalue().splitlines()


@pytest.mark.parametrize("width", [20, 30, 40, 50, 60, 70, 80, 100, 120, 160, 1000])
def test_everything_is_shown_at_any_width_and_no_line_is_too_long_or_ends_in_spaces(
    width: int,
) -> None:
    found = lines(table(), width)
    assert max(map(len, found)) <= width
    assert all(line == line.rstrip() for line in found)
    together = "".join("".join(found).split())
    assert all(
        word in "".join(found)
        for word in ("THREADS=512", "VECTOR=1", "24.56", "1.00x", "correct", "wrong_result")
    )
    assert "\N{HORIZONTAL ELLIPSIS}" not in together
    for word in REASON.split():
        assert word in together


def test_a_wide_terminal_has_one_line_for_each_row() -> None:
    found = lines(table(), 1000)
    assert len(found) == 5  # title, heads, rule, two rows
    assert found[4].startswith("    1  ") and found[4].endswith(REASON) and SETTING in found[4]


def test_text_is_wrapped_between_words_and_numbers_stay_in_their_columns() -> None:
    made = FittedTable([number_column("trial"), text_column("tunables"), number_column("us")])
    made.add("7", SETTING, "24.56")
    assert lines(made, 36) == [
        "trial  tunables                   us",
        "\N{BOX DRAWINGS LIGHT HORIZONTAL}" * 36,
        "    7  THREADS=512 VECTOR=1    24.56",
        "       ROWS_PER_BLOCK=2",
    ]


def test_heads_are_wrapped_before_a_column_goes_below_its_rows() -> None:
    made = FittedTable(
        [number_column("trial"), number_column("vs first seed"), number_column("modelled us")]
    )
    made.add("7", "1.10x", "22.35")
    assert lines(made, 27) == [
        "trial  vs first    modelled",
        "           seed          us",
        "\N{BOX DRAWINGS LIGHT HORIZONTAL}" * 27,
        "    7     1.10x       22.35",
    ]


def test_a_column_without_room_goes_below_its_rows_with_its_name() -> None:
    found = lines(table(), 60)
    assert f"    reason: {REASON[:20]}" in "\n".join(found)
    assert not any(line.split()[-1:] == ["reason"] for line in found)
    # of empty cells nothing is said
    assert not [line for line in found if line.strip() in ("reason:", "us: -")]


def test_the_first_column_stays_where_the_row_is_looked_up() -> None:
    made = FittedTable(
        [
            text_column("case"),
            number_column("max abs"),
            number_column("allowed"),
            number_column("failing"),
        ]
    )
    made.add("mission_causal", "2.00e-05", "1.00e-03", "0.00%")
    assert [line.startswith("mission_causal") for line in lines(made, 30)].count(True) == 1


def test_a_column_without_any_content_is_left_out() -> None:
    made = FittedTable([number_column("trial"), number_column("place"), text_column("reason")])
    made.add("0", "", "")
    assert lines(made, 80)[0] == "trial"


def test_a_table_without_rows_has_its_first_head() -> None:
    assert lines(FittedTable([number_column("trial"), text_column("name")]), 80)[0] == "trial"
