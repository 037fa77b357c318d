from __future__ import annotations

import ast
import math
from collections.abc import Mapping

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from evoengine.task.expression import (
    FUNCTIONS,
    MAX_DEPTH,
    MAX_LENGTH,
    MAX_MAGNITUDE,
    ExpressionError,
    Value,
    parse,
)

SCOPE: dict[str, Value] = {
    "B": 2,
    "S": 77,
    "D": 64,
    "scale": 0.125,
    "causal": True,
    "zero": 0,
    "big": 2**62,
}

numbers = st.sampled_from(
    ["0", "1", "2", "3", "7", "64", "1000", "0.5", "1e-3", "2.5e10", "9223372036854775807", *SCOPE]
)


def _arithmetic(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    truths = st.builds(
        "({} {} {})".format, inner, st.sampled_from(["<", "<=", ">", ">=", "==", "!="]), inner
    )
    truths |= st.builds("({0} < {1} <= {2})".format, inner, inner, inner)
    truths |= st.builds(
        "({} {} {})".format, truths, st.sampled_from(["and", "or"]), truths
    ) | st.builds("(not {})".format, inner)
    two = st.sampled_from(["ceil_div", "round_up", "min", "max"])
    return st.one_of(
        truths,
        st.builds(
            "({} {} {})".format, inner, st.sampled_from(["+", "-", "*", "/", "//", "%"]), inner
        ),
        st.builds(
            "({} ** {})".format, inner, st.sampled_from(["0", "1", "2", "5", "0.5", "-1", "64"])
        ),
        st.builds("(-{})".format, inner),
        st.builds("({} if {} else {})".format, inner, truths, inner),
        st.builds("{}({}, {})".format, two, inner, inner),
        st.builds("{}({})".format, st.sampled_from(["abs", "sqrt", "log2"]), inner),
    )


arithmetic = st.recursive(numbers, _arithmetic, max_leaves=12).filter(
    lambda text: len(text) <= MAX_LENGTH
)
python_names = {name: function for name, (function, _, _) in FUNCTIONS.items()}


def by_python(text: str, scope: Mapping[str, Value]) -> object:
    """What Python itself makes of the same text; None where it raises."""
    try:
        return eval(text, {"__builtins__": {}}, {**python_names, **scope})  # noqa: S307 - the text is the test's own
    except (ArithmeticError, ValueError, TypeError):
        return None


def has_a_value_beyond_64_bits(text: str) -> bool:
    parts = [
        ast.unparse(node)
        for node in ast.walk(ast.parse(text, mode="eval"))
        if isinstance(node, ast.expr)
    ]
    values = [by_python(part, SCOPE) for part in parts if part not in python_names]
    return any(
        value is None or isinstance(value, complex) or not abs(value) <= MAX_MAGNITUDE
        for value in values
    )  # type: ignore[operator]


@given(arithmetic)
def test_evaluation_agrees_with_python(text: str) -> None:
    expected = by_python(text, SCOPE)
    try:
        value = parse(text).evaluate(SCOPE)
    except ExpressionError:
        assert has_a_value_beyond_64_bits(text)
    else:
        assert value == expected
        assert type(value) is type(expected)


@given(
    st.text()
    | st.text(alphabet="0123456789.eExj_+-*/%()<>=! ,ifelsandorBSD\"'[]{}:\\\n#", max_size=80)
)
@example("1if 2else 3")  # Python warns about its looks
@example('"\\d"')
@example("9" * 390)
@example("9223372036854775807 ** 64")  # no float can hold it
@example("-" * 399 + "1")
@example("(" * 199 + "1" + ")" * 199)
@example("\ud800")
@example("\0")
def test_any_text_is_a_bounded_number_or_an_expression_error(text: str) -> None:
    try:
        value = parse(text).evaluate(SCOPE)
    except ExpressionError as error:
        assert 1 <= error.column <= MAX_LENGTH + 1
        assert "\n" not in str(error)
    else:
        assert -MAX_MAGNITUDE <= value <= MAX_MAGNITUDE


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("ceil_div(77, 16)", 5),
        ("ceil_div(S, 77)", 1),
        ("round_up(S, 16)", 80),
        ("round_up(80, 16)", 80),
        ("min(B, S, D)", 2),
        ("max(1, 2, 3, 4, 5, 6, 7, 8)", 8),
        ("7 // 2 + 7 % 2", 4),
        ("-7 // 2", -4),
        ("1/sqrt(D)", 0.125),
        ("log2(D)", 6.0),
        ("48 if D <= 64 else 32", 48),
        ("2**-1", 0.5),
        ("1 < B < 3", True),
        ("B and S", True),
        ("zero or zero", False),
        ("true and not false", True),
        ("zero and 1 // zero", False),
        ("1 if causal else 1 // zero", 1),
        ("0x40", 64),
        ("(S +\n  D)", 141),
    ],
)
def test_value_of(text: str, value: Value) -> None:
    found = parse(text).evaluate(SCOPE)
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "expected an expression, got nothing"),
        ("1 +", "not an arithmetic expression"),
        (
            "ceil_div(S",
            "unbalanced parentheses: YAML splits a list at bare commas, so put quotes around",
        ),
        ("a" * (MAX_LENGTH + 1), f"expected at most {MAX_LENGTH} characters, got {MAX_LENGTH + 1}"),
        ("+".join("1" * (MAX_DEPTH + 2)), f"expected at most {MAX_DEPTH} levels of nesting"),
        ("S && D", "'&' is not arithmetic; allowed are numbers, names.*and/or/not"),
        ("'a' * 9", '"\'" is not arithmetic'),
        ("x[0]", r"'\[' is not arithmetic"),
        ("S.real", "Attribute is not arithmetic"),
        ("S in D", "Compare is not arithmetic"),
        ("S is D", "Compare is not arithmetic"),
        ("1j", "Constant is not arithmetic"),
        ("None", "Constant is not arithmetic"),
        ("(1, 2)", "Tuple is not arithmetic"),
        ("min(*S, 1)", "Starred is not arithmetic"),
        ("S(1)", "no function 'S'; known: ceil_div, round_up"),
        ("__import__(S)", "no function '__import__'"),
        ("min(1)", "min takes 2 to 8 arguments, got 1"),
        ("ceil_div(1, 2, 3)", "ceil_div takes 2 arguments, got 3"),
        ("abs(x=1)", "Call is not arithmetic"),
        ("9223372036854775808", "number is beyond 64 bits"),
        ("1e400", "number is beyond 64 bits"),
    ],
)
def test_parse_explains(text: str, says: str) -> None:
    with pytest.raises(ExpressionError, match=says):
        parse(text)


@pytest.mark.parametrize(
    ("text", "says", "column"),
    [
        ("S + 1 // zero", "division.* by zero in 'S . 1 // zero', column 5", 5),
        ("S % zero", "modulo.* in", 1),
        ("1 / (S - S)", "division by zero", 1),
        ("ceil_div(S, zero)", "by zero in 'ceil_div.S, zero.'", 1),
        ("sqrt(zero - 1)", "math domain error|expected a nonnegative input", 1),
        ("log2(zero)", "math domain error|expected a positive input", 1),
        ("1 + (zero - 8) ** 0.5", "a power of a negative number is not a real number", 5),
        ("2 ** S", "an exponent is beyond 64", 1),
        ("9 ** 9 ** 9 ** 9", "an exponent is beyond 64", 11 - 5),
        ("big * 2", "value is beyond 64 bits", 1),
        ("1 + 1e300 * B", "number is beyond 64 bits", 5),
        ("2 * BLOC", "unknown name 'BLOC'; known: B, D, S", 5),
        ("2 * scal", "unknown name 'scal'; did you mean 'scale'[?] known: B, D", 5),
    ],
)
def test_evaluate_explains(text: str, says: str, column: int) -> None:
    with pytest.raises(ExpressionError, match=says) as caught:
        parse(text).evaluate(SCOPE)
    assert caught.value.column == column


def test_an_error_never_quotes_a_value_of_the_scope() -> None:
    for text in ("2 ** S", "(zero - S) ** 0.5", "S // zero", "big * S"):
        with pytest.raises(ExpressionError) as caught:
            parse(text).evaluate(SCOPE)
        assert "77" not in str(caught.value)


def test_evaluation_fits_the_stack_of_a_deep_caller() -> None:
    deep = parse("abs(" * 79 + "-S" + ")" * 79)

    def below(frames: int) -> Value:
        return below(frames - 1) if frames else deep.evaluate(SCOPE)

    assert below(400) == 77


def test_names_are_collected_and_equality_is_by_text() -> None:
    found = parse("ceil_div(S, D) * B if causal else 0")
    assert found.names == {"S", "D", "B", "causal"}
    assert found == parse(" ceil_div(S,  D) * B if causal else 0 ")
    assert found != parse("S")
    assert not parse("true or True").names
    assert {found, parse(found.text)} == {found}


def test_a_number_of_yaml_is_an_expression() -> None:
    assert parse(1e-5).evaluate({}) == 1e-5
    assert parse(True).evaluate({}) is True
    assert parse(1).evaluate({}) == 1
    with pytest.raises(ExpressionError, match="unknown name 'nan'"):
        parse(math.nan).evaluate({})
