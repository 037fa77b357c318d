"""Tokens, operands, names and statements are found where they stand."""

from __future__ import annotations

import pytest

from evoengine.evaluate.repair.expression_extents import Extents
from evoengine.evaluate.repair.source_tokens import TokenList
from tests.evaluate.repair.small_kernel import candidate, code_of


def operands(text: str, operator: str) -> tuple[str, str]:
    tokens = TokenList(text)
    extents = Extents(tokens)
    (place,) = [
        item
        for item in range(len(tokens))
        if tokens.text(item) == operator and extents.is_binary(item)
    ]
    return (
        tokens.source(*extents.operand_before(place)),
        tokens.source(*extents.operand_behind(place)),
    )


@pytest.mark.parametrize(
    ("text", "operator", "expected"),
    [
        ("x = a + b * c;", "+", ("a", "b * c")),
        ("x = a * b + c;", "*", ("a", "b")),
        ("x = f(a, b) / g[i + 1];", "/", ("f(a, b)", "g[i + 1]")),
        ("x = size_t(a + b) * C + c;", "*", ("size_t(a + b)", "C")),
        ("if (i < N && j < M) x = 1;", "&&", ("i < N", "j < M")),
        ("x = c ? a - b : d;", "-", ("a", "b")),
        ("x = -a % b;", "%", ("-a", "b")),
        ("for (int i = 0; i<N; ++i) f(i);", "<", ("i", "N")),
    ],
)
def test_operands_reach_as_far_as_their_operators_bind(
    text: str, operator: str, expected: tuple[str, str]
) -> None:
    assert operands(text, operator) == expected


@pytest.mark.parametrize(
    "text",
    [
        "const half* x = y;",
        "f(*x, &y);",
        "static_cast<int>(x);",
        "reinterpret_cast<const float4*>(x)[0];",
        "x = -y;",
        "template <int D, bool CAUSAL> void f();",
    ],
)
def test_what_is_no_operator_between_operands_is_none(text: str) -> None:
    extents = Extents(TokenList(text))
    assert not [place for place in range(len(extents.tokens)) if extents.is_binary(place)]


def test_names_have_their_sorts_and_scopes() -> None:
    code = code_of(candidate())
    sorts = {item.name: item.sort for item in code.names.all}
    assert sorts["x"] == "pointer" and sorts["parts"] == "array"
    assert sorts["lane"] == sorts["C"] == sorts["ROWS"] == sorts["THREADS"] == "int"
    assert sorts["scale"] == sorts["top"] == "float"
    last = len(code.tokens) - 1
    position = max(place for place in range(last) if code.tokens.text(place) == "__syncthreads")
    visible = {item.name for item in code.names.visible(position)}
    assert {"lane", "warp", "first", "sum", "C", "ROWS", "THREADS"} <= visible
    assert not {"c", "step"} & visible  # of loops that have ended
    assert "c" not in {item.name for item in code.names.visible(last)}


def test_statements_and_conditions_are_whole() -> None:
    code = code_of(candidate())
    statements = {code.tokens.source(*pair) for pair in code.statements}
    assert "sum += value * weight[c] * scale;" in statements
    assert "parts[warp][0] = sum;" in statements
    assert "__syncthreads();" in statements
    conditions = {code.tokens.source(*pair) for pair in code.conditions}
    assert {"c < C", "lane == 0", "step > 0"} <= conditions


def test_what_stands_behind_an_else_block_is_a_statement_of_its_own() -> None:
    whole = "if (lane == 0) { parts[warp][0] = sum; } else { sum = 0.0f; } top = sum;"
    code = code_of(candidate(("if (lane == 0) parts[warp][0] = sum;", whole)))
    statements = [code.tokens.source(first, last) for first, last in code.statements]
    assert {"parts[warp][0] = sum;", "sum = 0.0f;", "top = sum;"} <= set(statements)


def test_no_change_reads_a_variable_in_its_own_first_value() -> None:
    code = code_of(candidate())
    start = code.source.index("float value = x[") - code.offset + len("float value = ")
    first, _ = code.token_places(start, start + 1) or (0, 0)
    assert "value" not in {item.name for item in code.visible(first, "float")}
    assert "value" in {item.name for item in code.visible(first + 20, "float")}
