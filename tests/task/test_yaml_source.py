from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from evoengine.task.yaml_source import Path, YamlError, load

YAML_LIKE = st.text(
    alphabet="ab:-[]{},\n \"'#&*!|>%@?~0123456789.ex\\uU<=\t\r\ufeff\x85\u2028é", max_size=60
)

leaves = (
    st.integers(-(10**9), 10**9)
    | st.booleans()
    | st.none()
    | st.text(alphabet="abcXYZ +*()<>/_é,:#\"'", max_size=12)
)
trees = st.recursive(
    leaves,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text("abcDEF_", min_size=1), inner, max_size=4)
    ),
)


def written(value: object) -> str:
    """`value` in flow style, every text in double quotes."""
    if isinstance(value, dict):
        return "{" + ", ".join(f'"{key}": {written(item)}' for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(written, value)) + "]"
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return str(value)


@given(st.text() | YAML_LIKE)
@example('a: "\\U00110000"')
@example("a: \x07")
@example("a: " + "9" * 5000)
@example("a: 0x_")
@example("a: !!int abc")
@example("a: !!bool foo")
@example("%YAML 1." + "9" * 5000 + "\n---\na")
@example("[" * 5000)
@example("- " * 5000)
@example("\ud800")
def test_any_text_is_plain_data_or_a_yaml_error(text: str) -> None:
    try:
        source = load(text, "task.yaml")
    except YamlError as error:
        assert str(error).startswith("task.yaml:")
        assert "\n" not in str(error)
    else:
        assert_plain(source.data)


def assert_plain(data: object) -> None:
    if isinstance(data, dict):
        assert all(isinstance(key, str) for key in data)
        for item in data.values():
            assert_plain(item)
    elif isinstance(data, list):
        for item in data:
            assert_plain(item)
    else:
        assert data is None or isinstance(data, str | int | float | bool)


@given(trees)
def test_plain_data_comes_back(data: object) -> None:
    assert load(written(data), "f").data == data


@given(trees, st.sampled_from(["\n", "\r\n"]), st.integers(1, 50))
def test_every_mark_points_at_its_value(data: object, newline: str, first_line: int) -> None:
    text = f"# é \U0001f600{newline}{newline}top:{newline}  - {written(data)}{newline}"
    source = load(text, "f", first_line)

    def visit(value: object, path: Path) -> None:
        mark = source.marks[path]
        assert text[mark.start : mark.end] == written(value)
        line, column = (
            text.count("\n", 0, mark.start),
            mark.start - (text.rfind("\n", 0, mark.start) + 1),
        )
        assert (mark.line, mark.column) == (line + first_line, column + 1)
        for key, item in (
            value.items()
            if isinstance(value, dict)
            else enumerate(value)
            if isinstance(value, list)
            else ()
        ):
            visit(item, (*path, key))

    visit(data, ("top", 0))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a: &x 1", "f:1:4: anchors and aliases are not allowed .a value that begins with"),
        ("a: 1\nb: *S", "f:2:4: anchors and aliases are not allowed"),
        (
            "a: !!python/object:os.system x",
            "f:1:4: tag 'tag:yaml.org,2002:python/object:os.system' is not allowed",
        ),
        ('a: 1\nb: "\\ud800"', r"f:2:4: character '\\ud800' is not allowed"),
        ("a: !mine x", "f:1:4: tag '!mine' is not allowed"),
        ("a: !!int 3", "f:1:4: tag .* is not allowed"),
        ("a: 1\nb: 2\n\na: 3", "f:4:1: key 'a' appears twice$"),
        ("{[1]: 2}", "f:1:2: a key must be a plain word$"),
        (
            "a: b: c",
            "f:1:5: not YAML: mapping values are not allowed here .a value .* needs quotes",
        ),
        ("a: 'x", "f:1:6: not YAML: .*unexpected end of stream"),
        ("a:\n\t- 1", "f:2:1: not YAML: .*cannot start any token"),
        ("a: 1\nb: \x07", r"f:2:4: not YAML: character '\\x07' is not allowed"),
        ("a\n---\nb", "f:2:1: not YAML: but found another document"),
        ("[" * 3000, "f:1:1: not YAML: nested too deeply"),
        ("a: &x [1,1]\nb: &y [*x,*x]", "f:1:4: anchors and aliases"),
    ],
)
def test_refused_with_its_place(text: str, says: str) -> None:
    with pytest.raises(YamlError, match="^" + says):
        load(text, "f")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("64", 64),
        ("-1", -1),
        ("1_000", 1000),
        ("0x40", 64),
        ("0", 0),
        ("1e-3", 1e-3),
        ("5E4", 5e4),
        ("1.5e3", 1500.0),
        ("1.5e-3", 1.5e-3),
        (".5", 0.5),
        ("true", True),
        ("~", None),
        ("", None),
        # YAML 1.1 reads these as 8, 90, infinity, a date
        ("010", "010"),
        ("1:30", "1:30"),
        (".inf", ".inf"),
        (".nan", ".nan"),
        ("1e999", "1e999"),
        ("-1.0e+999", "-1.0e+999"),
        ("2024-01-01", "2024-01-01"),
        ("1/sqrt(D)", "1/sqrt(D)"),
        ("=", "="),
        ("<<", "<<"),
        ("9" * 40, "9" * 40),
    ],
)
def test_scalars_are_what_they_look_like(text: str, value: object) -> None:
    found = load(f"a: {text}", "f").data["a"]
    assert found == value
    assert type(found) is type(value)


def test_lines_are_those_of_an_editor() -> None:
    """YAML ends a line at U+2028 and at a lone carriage return as well."""
    source = load('a: "x\u2028y"\nb: "\x85"\nc: 3\n', "f")
    assert source.at(("c",)) == "f:3:4"


def test_a_missing_place_is_reported_by_its_nearest_parent() -> None:
    source = load("a: {b: [1, 2]}", "f")
    assert source.at(("a", "b", 7, "c")) == "f:1:8"
    assert str(source.error(("x",), "no x")) == "f:1:1: no x"
