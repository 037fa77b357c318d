from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from evoengine.candidate import kernel_file
from evoengine.candidate.header import split_arguments
from evoengine.candidate.kernel_file import Candidate
from evoengine.errors import CandidateError
from evoengine.task import expression
from tests.small import CODE, HEADER, changed, kernel

names = st.from_regex(r"[A-Z][A-Z_]{0,6}", fullmatch=True)
choices = st.lists(st.integers(-(2**40), 2**40), min_size=1, max_size=4, unique=True)
comments = st.text(alphabet="abc é:[]{},'\"#&*!", max_size=12).map(lambda text: f"  # {text}")


def _flow(values: list[int], draw: Any) -> str:
    return " [" + ", ".join(map(str, values)) + "]" + draw(comments | st.just(""))


def _lines(values: list[int], draw: Any) -> str:
    indent = draw(st.sampled_from(["  ", "    "]))
    return "".join(f"\n{indent}- {value}{draw(comments | st.just(''))}" for value in values)


def _spread(values: list[int], draw: Any) -> str:
    return (
        " [\n      "
        + ",\n      ".join(f"{value:#x}" if value >= 0 else str(value) for value in values)
        + "\n    ]"
    )


@st.composite
def files(draw: Any) -> str:
    """A kernel file with tunables in all the styles of YAML."""
    tunables = draw(st.dictionaries(names, choices, min_size=1, max_size=4))
    text = (
        draw(st.sampled_from(["", "\ufeff", "\n\n", "\ufeff \n"]))
        + "/* evoengine\nname: x\nprecision: fp16\n"
    )
    later = draw(st.booleans())
    launches = 'launches:\n  - {kernel: f, grid: "1", block: 32, args: []}\n'
    text += launches if later else ""
    text += "tunables:" + draw(comments | st.just("")) + "\n"
    for name, values in tunables.items():
        text += f"  {name}:" + draw(st.sampled_from([_flow, _lines, _spread]))(values, draw) + "\n"
        text += draw(st.sampled_from(["", "\n", "  # about the next\n", "# at the edge\n\n"]))
    text += (
        ("" if later else launches)
        + "*/"
        + draw(st.sampled_from(["", CODE, " int x; /* evoengine\n*/"]))
    )
    return text.replace("\n", "\r\n") if draw(st.booleans()) else text


@given(files(), st.randoms(use_true_random=False))
def test_with_defaults_parses_to_the_chosen_values_first(text: str, random: Any) -> None:
    default = kernel_file.parse(text)
    chosen = {name: random.choice(values) for name, values in default.plan.tunables.items()}
    tuned = default.tuned(chosen)
    again = kernel_file.parse(tuned.with_defaults())

    assert again.tunables == chosen
    assert again.code == default.code
    assert {name: set(values) for name, values in again.plan.tunables.items()} == {
        name: set(values) for name, values in default.plan.tunables.items()
    }
    assert again.digest == tuned.digest
    assert again.with_defaults() == again.source
    assert again.source.count("\n") == text.count("\n")
    assert [again.header.at((name,)) for name in again.header.data] == [
        default.header.at((name,)) for name in default.header.data
    ]


@given(files())
def test_the_defaults_leave_the_file_unchanged(text: str) -> None:
    parsed = kernel_file.parse(text)
    assert parsed.with_defaults() == text
    assert parsed.tunables == {name: values[0] for name, values in parsed.plan.tunables.items()}


@given(
    st.text()
    | st.text(alphabet="ab:-[]{},\n \"'#&*!|>0123456789<>()+/", max_size=80).map(
        lambda text: kernel(HEADER + text)
    )
)
@example("/* evoengine\n*/")
@example("/* evoengine\n")
@example("/* evoengine */")
@example("\ud800" * (kernel_file.MAX_SOURCE_BYTES + 1))
@example(kernel(code="\ud800"))
@example(kernel(HEADER.replace("256", "9" * 5000)))
@example(kernel(HEADER.replace("256", "0x" + "f" * 5000)))
@example(kernel(HEADER.replace("scale_rows", "é" * 3000)))
@example(kernel(HEADER + 'summary: "\\ud800"\n'))
@example(kernel("launches: " + "[" * 5000))
def test_any_text_is_a_candidate_or_a_candidate_error(text: str) -> None:
    try:
        parsed = kernel_file.parse(text, "k.cu")
    except CandidateError as error:
        assert str(error).startswith("k.cu:")
        assert "\n" not in str(error)
        assert len(str(error)) < 1500
    else:
        assert parsed.digest
        assert parsed.source_digest
        assert parsed.plan.model_dump_json()


key_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(["THREADS", "x", "1/0", "float32"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["dtype", "shape", "kernel", "grid", "value"]), inner, max_size=3
        )
    ),
    max_leaves=5,
)


@given(
    st.sampled_from(
        ["name", "precision", "tunables", "let", "constants", "require", "scratch", "launches"]
    ),
    key_values,
)
def test_any_value_of_any_key_is_accepted_or_refused_with_its_place(
    key: str, value: object
) -> None:
    import json

    lines = [
        f"{k}: {json.dumps(value if k == key else v)}\n"
        for k, v in {**kernel_file.parse(kernel()).header.data, key: None}.items()
    ]
    try:
        kernel_file.parse(kernel("".join(lines)), "k.cu")
    except CandidateError as error:
        assert str(error).startswith("k.cu:")


def test_code_keeps_the_line_numbers_of_the_file() -> None:
    parsed = kernel_file.parse("\n\n" + kernel(code=" int a;\nint b;\n"))
    assert parsed.code.split("\n").index("int b;") == parsed.source.split("\n").index("int b;")
    assert "evoengine" not in parsed.code


def test_the_first_comment_end_ends_the_header_even_in_quotes() -> None:
    """As in C: a compiler sees the rest as code."""
    with pytest.raises(CandidateError, match=r"k.cu:13:13: not YAML.*end of stream"):
        kernel_file.parse(kernel(HEADER + 'summary: "a */ b"\n'), "k.cu")


def test_digest_counts_code_and_plan_and_choice_and_nothing_else() -> None:
    parsed = kernel_file.parse(kernel())
    same = [
        kernel("# a remark\n" + HEADER),
        kernel(HEADER + "summary: other words\n"),
        changed("name: scale_rows", "name: renamed"),
        changed("[256, 128, 512]", "[256, 512]"),
        "\n\n" + kernel(),
    ]
    other = [
        kernel(code=CODE + "int a;"),
        changed("4*THREADS", "8*THREADS"),
        changed("[256, 128, 512]", "[128, 256, 512]"),
        changed("fp32", "fp16"),
    ]
    assert {kernel_file.parse(text).digest for text in same} == {parsed.digest}
    assert parsed.digest not in {kernel_file.parse(text).digest for text in other}
    assert len({kernel_file.parse(text).source_digest for text in same + other}) == 9


def test_tuned_changes_the_choice_only() -> None:
    parsed = kernel_file.parse(kernel())
    tuned = parsed.tuned({"THREADS": 512})
    assert tuned.tunables == {"THREADS": 512, "ROWS": 1}
    assert tuned.source == parsed.source
    assert tuned.digest != parsed.digest
    assert tuned.tuned({"THREADS": 256}).digest == parsed.digest


def test_tuned_takes_undeclared_values_of_declared_names_when_asked() -> None:
    parsed = kernel_file.parse(kernel(), "k.cu")
    tuned = parsed.tuned({"THREADS": 96}, undeclared_values=True)
    assert tuned.tunables == {"THREADS": 96, "ROWS": 1} and tuned.digest != parsed.digest
    assert kernel_file.parse(tuned.with_defaults()).plan.tunables["THREADS"] == (96, 256, 128)
    with pytest.raises(CandidateError, match="THREAD=96: expected a tunable among THREADS, ROWS"):
        parsed.tuned({"THREAD": 96}, undeclared_values=True)
    with pytest.raises(CandidateError, match=f"THREADS={2**63}: expected one of"):
        parsed.tuned({"THREADS": 2**63}, undeclared_values=True)


@pytest.mark.parametrize(
    ("choice", "says"),
    [
        ({"THREADS": 64}, r"^k.cu:5:12: THREADS=64: expected one of \[256, 128, 512\]"),
        ({"THREAD": 256}, "THREAD=256: expected a tunable among THREADS, ROWS"),
    ],
)
def test_tuned_refuses_what_is_not_declared(choice: dict[str, int], says: str) -> None:
    with pytest.raises(CandidateError, match=says):
        kernel_file.parse(kernel(), "k.cu").tuned(choice)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            "",
            (
                "^k.cu:1:1: expected the launch plan first: a comment that begins with '/[*]"
                " evoengine' on a line of its own, got ''"
            ),
        ),
        ("__global__ void f() {}", "got '__global__ void f.. {}'"),
        ("// mine\n" + kernel(), "^k.cu:2:1: .*this one has text before it"),
        ("/* evoengine name: x */", "^k.cu:1:1: .*this one continues on the same line"),
        ("/* evoengine\nname: x\n", "^k.cu:1:1: .*this one is not closed"),
        ("/* evoengine\n*/", "^k.cu:.*expected keys such as name, precision, launches; got None"),
        ("/* evoengine\n- a\n*/", "^k.cu:2:1: expected keys such as .* got .'a'."),
        (kernel(code="a\n b\0"), r"^k.cu:14:3: character '\\x00' is not allowed"),
        (
            kernel(code="x" * kernel_file.MAX_SOURCE_BYTES),
            f"^k.cu: expected at most {kernel_file.MAX_SOURCE_BYTES} bytes, got 26",
        ),
        (
            kernel("#" * kernel_file.MAX_HEADER_BYTES + "\n"),
            (
                f"^k.cu:2:1: expected a header of at most {kernel_file.MAX_HEADER_BYTES} bytes, got"
                " 32769"
            ),
        ),
    ],
)
def test_a_missing_header_is_explained(text: str, says: str) -> None:
    with pytest.raises(CandidateError, match=says):
        kernel_file.parse(text, "k.cu")


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        (
            "precision: fp32",
            "precison: fp32",
            (
                "^k.cu:3:11: precison: unknown key; did you mean 'precision'[?] known: name,"
                " precision, summary"
            ),
        ),
        (
            "    shared: 4*THREADS",
            "    shard: 4",
            (
                "^k.cu:11:12: launches.0.shard: unknown key; did you mean 'shared'[?] known:"
                " kernel, grid, block, shared"
            ),
        ),
        ("precision: fp32\n", "", "^k.cu:2:1: precision: this key is required"),
        (
            "name: scale_rows",
            "name: two words",
            "^k.cu:2:7: name: expected letters, digits.* got 'two words'",
        ),
        (
            "[256, 128, 512]",
            "[256, big]",
            "^k.cu:5:18: tunables.THREADS.1: expected a whole number, got 'big'",
        ),
        (
            "[256, 128, 512]",
            "[256, 010]",
            "^k.cu:5:18: tunables.THREADS.1: expected a whole number, got '010'",
        ),
        (
            "[256, 128, 512]",
            "[256, true]",
            "^k.cu:5:18: tunables.THREADS.1: expected a whole number, got True",
        ),
        ("[256, 128, 512]", "[]", "^k.cu:5:12: tunables.THREADS: expected at least 1 in the list"),
        ("[256, 128, 512]", "256", "^k.cu:5:12: tunables.THREADS: expected a list, got 256"),
        (
            "[256, 128, 512]",
            "[0x10000000000000000]",
            "^k.cu:5:13: tunables.THREADS.0: expected .*, got '0x1",
        ),
        (
            "[256, 128, 512]",
            "[256, 128, 256]",
            "^k.cu:5:12: tunables: THREADS: a value appears twice",
        ),
        (
            "  ROWS: [1, 2]",
            "  ROWS: [1, 2]\nlet:\n  ROWS: 3",
            "^k.cu:8:9: 'ROWS' is in both tunables and let",
        ),
        (
            "  ROWS: [1, 2]",
            "  ROWS: [1, 2]\nconstants:\n  ROWS: 3",
            "^k.cu:8:9: 'ROWS' is in both tunables and constants",
        ),
        (
            "  ROWS: [1, 2]",
            "  R-S: [1, 2]",
            "^k.cu:6:8: tunables.R-S: expected letters, digits.* got 'R-S'",
        ),
        (
            "[THREADS]",
            "[THREADS, 1, 1, 1]",
            "^k.cu:10:12: launches.0.block: expected at most 3 in the list",
        ),
        (
            "4*THREADS",
            "4*THREADS)",
            (
                "^k.cu:11:13: launches.0.shared: not an arithmetic expression .*in '4[*]THREADS.',"
                " column 10"
            ),
        ),
        ("4*THREADS", "import os", "^k.cu:11:13: launches.0.shared: not an arithmetic expression"),
        ("4*THREADS", "[4]", "^k.cu:11:13: launches.0.shared: expected an expression, got .4."),
        (
            "kernel: scale<ROWS, flip>",
            "kernel: scale<ROWS, flip",
            "^k.cu:8:13: launches.0.kernel: expected a kernel's name",
        ),
        (
            "kernel: scale<ROWS, flip>",
            "kernel: scale<ROWS,>",
            "^k.cu:8:13: launches.0.kernel: expected an expression, got nothing",
        ),
        (
            "kernel: scale<ROWS, flip>",
            "kernel: [scale]",
            "^k.cu:8:13: launches.0.kernel: expected text, got a list",
        ),
        (
            "kernel: scale<ROWS, flip>",
            'kernel: "a; b"',
            "^k.cu:8:13: launches.0.kernel: expected a kernel's name.* got 'a; b'",
        ),
        (
            "factor]",
            "{value: C, dtpe: int32}]",
            (
                "^k.cu:12:40: launches.0.args.3.dtpe: unknown key; did you mean 'dtype'[?] known:"
                " value, dtype"
            ),
        ),
        (
            "factor]",
            "{value: C, dtype: int}]",
            "^k.cu:12:41: launches.0.args.3.dtype: expected 'float16', .* got 'int'",
        ),
        (
            "factor]",
            "[factor]]",
            "^k.cu:12:23: launches.0.args.3: expected an expression, got .'factor'.",
        ),
        ("factor]", "*factor]", "^k.cu:12:23: anchors and aliases are not allowed"),
        ("factor]", "&a factor]", "^k.cu:12:23: anchors and aliases"),
        ("factor]", "!!str factor]", "^k.cu:12:23: tag .* is not allowed"),
        (
            "precision: fp32",
            "precision: fp32\nprecision: fp16",
            "^k.cu:4:1: key 'precision' appears twice",
        ),
    ],
)
def test_a_wrong_header_is_explained(old: str, new: str, says: str) -> None:
    with pytest.raises(CandidateError, match=says):
        kernel_file.parse(changed(old, new), "k.cu")


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        (
            '["ceil_div(N, ROWS)"]',
            "[ceil_div(N, ROWS)]",
            (
                r"^k.cu:9:12: grid: 'ceil_div\(N' is cut at a comma: YAML splits a list at bare"
                r" commas, so quote"
            ),
        ),
        (
            "[THREADS]",
            "[1, min(THREADS, 32)]",
            r"^k.cu:10:16: block: 'min\(THREADS' is cut at a comma",
        ),
        (
            "[x, out, C, factor]",
            "[x, out, max(C, 1), factor]",
            r"^k.cu:12:20: args: 'max\(C' is cut at a comma",
        ),
        (
            "  ROWS: [1, 2]",
            "  ROWS: [1, 2]\nrequire: [min(THREADS, 2) > 1]",
            r"^k.cu:7:11: require.0: .*YAML splits a list at bare commas.*put quotes",
        ),
        (
            "  - kernel: scale<ROWS, flip>",
            (
                "  - {kernel: g<ROWS, flip>, grid: 1, block: 1, args: []}\n  - kernel: scale<ROWS,"
                " flip>"
            ),
            (
                "^k.cu:8:14: kernel: 'g<ROWS' is cut at a comma: YAML splits {...} at bare commas,"
                " so quote the name"
            ),
        ),
    ],
)
def test_a_forgotten_quote_is_explained(old: str, new: str, says: str) -> None:
    with pytest.raises(CandidateError, match=says):
        kernel_file.parse(changed(old, new), "k.cu")


def test_too_many_configurations_are_refused() -> None:
    many = "".join(f"  T{index}: {list(range(100))}\n" for index in range(4))
    with pytest.raises(
        CandidateError, match=r"k.cu:5:3: expected at most 1000000 configurations, got 600000000"
    ):
        kernel_file.parse(changed("  ROWS: [1, 2]\n", "  ROWS: [1, 2]\n" + many), "k.cu")


def test_single_extents_need_no_list() -> None:
    parsed = kernel_file.parse(changed("[THREADS]", "THREADS"))
    assert parsed.plan.launches[0].block == ("THREADS",)


def test_a_tunable_at_the_limits_of_64_bits_is_kept() -> None:
    most = expression.MAX_MAGNITUDE
    parsed = kernel_file.parse(changed("[256, 128, 512]", f"[256, {most}, {-most}]"))
    assert (
        kernel_file.parse(parsed.tuned({"THREADS": -most}).with_defaults()).tunables["THREADS"]
        == -most
    )


@given(
    st.lists(st.sampled_from(["D", "min(a, b)", "max(min(1, 2), 3)", "S > 64", "(a)"]), max_size=4)
)
def test_split_arguments_splits_outside_parentheses_only(parts: list[str]) -> None:
    assert split_arguments(", ".join(parts) or None) == tuple(parts)


@given(names, names)
def test_two_candidates_are_the_same_when_their_text_and_choice_are(
    first: str, second: str
) -> None:
    assume(first != second)
    texts = [changed("name: scale_rows", f'name: "{name}"') for name in (first, second)]
    parsed: list[Candidate] = [kernel_file.parse(text) for text in texts]
    assert parsed[0].digest == parsed[1].digest
    assert parsed[0].source_digest != parsed[1].source_digest


def test_every_order_of_choices_keeps_the_number_of_lines() -> None:
    text = changed(
        "[256, 128, 512]", "\n    - 256   # the default\n    - 128\n    # the large one\n    - 512"
    )
    parsed = kernel_file.parse(text)
    for threads, rows in itertools.product([256, 128, 512], [1, 2]):
        written = parsed.tuned({"THREADS": threads, "ROWS": rows}).with_defaults()
        assert kernel_file.parse(written).tunables == {"THREADS": threads, "ROWS": rows}
        assert "# the large one" in written
        assert written.count("\n") == text.count("\n")
