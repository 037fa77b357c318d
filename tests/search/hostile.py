"""Replies that were written, or bent by chance, to bring down whatever reads them."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from tests.scale_task import kernel

CORPUS = Path(__file__).parents[1] / "generate" / "replies"
SEEDS = Path(__file__).parents[2] / "seeds"

KERNEL = (
    kernel("wanted")
    .replace("// wanted\n", "// NUMBER\n")
    .replace("BLOCK: [128, 64, 32, 256]   # threads\n  UNROLL: [4, 2, 1]", "BLOCK: [128, 64]")
    .replace(
        "{ y[0] = 2 * x[0]; }",
        "{\n    long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;\n    if (i < n)"
        " y[i] = 2 * x[i];\n}",
    )
)
BRIEF = """/* evoengine
name: brief
precision: fp32
tunables: {BLOCK: [128, 64]}
launches:
  - {kernel: "scale<4>", grid: ["ceil_div(N, BLOCK)"], block: [BLOCK], args: [x, y, N]}
*/
// NUMBER
template <int K> __global__ void scale(const float* x, float* y, long long n) { if (threadIdx.x < n) y[threadIdx.x] = 2 * x[threadIdx.x]; }
"""


def fenced(source: str) -> str:
    """A reply that holds `source`."""
    return f"Bound by bytes.\n\n```cuda\n{source}```\n\n## Thoughts\n- wider loads\n"


def bent(old: str, new: str, source: str = KERNEL) -> str:
    """A reply with the kernel in which `old` reads `new`."""
    assert source.count(old) == 1, old
    return fenced(source.replace(old, new))


def with_code(line: str) -> str:
    """A reply with the kernel behind `line`."""
    return bent('extern "C"', f'{line}\nextern "C"')


# What is refused before anything is compiled, with words of the refusal.
REFUSED: dict[str, tuple[str, str]] = {
    "a forbidden header": (with_code("#include <vector>"), "#include of 'vector' is not allowed"),
    "a file of the machine": (
        with_code('#include "/etc/passwd"'),
        "#include of '/etc/passwd' is not allowed",
    ),
    "a header in a trigraph": (
        with_code("??=include <vector>"),
        "#include of 'vector' is not allowed",
    ),
    "other lines than its own": (with_code('#line 7 "kernel expressions"'), "#line is not allowed"),
    "a name with a dot before it": (
        bent("name: wanted", "name: .wanted"),
        "name: expected letters, digits",
    ),
    "a name like an option": (
        bent("name: wanted", "name: -wanted"),
        "name: expected letters, digits",
    ),
    "a name of 81 characters": (
        bent("name: wanted", "name: " + "n" * 81),
        "name: expected at most 80 characters",
    ),
    "a kernel's name of 1,100 characters": (
        bent("kernel: scale", "kernel: " + "k" * 1100),
        "launches 'kkk",
    ),
    "400 template arguments": (
        bent('"scale<4>"', '"scale<' + ",".join(["BLOCK"] * 400) + '>"', BRIEF),
        "has 2005 characters with its template arguments in case small, expected at most 1000",
    ),
    "30,000 blanks in a kernel's name": (
        bent("kernel: scale", f"kernel: 'scale{' ' * 30000}!'"),
        "expected a kernel's name",
    ),
    "half a character": (with_code("// \ud800 \udfff").replace("wider", "\udc00"), ""),
    "an alias bomb": (
        bent("launches:", "let: &a {A: 1}\nconstants: *a\nlaunches:"),
        "anchors and aliases are not allowed",
    ),
    "a tag": (
        bent("precision: fp32", "precision: !!python/object/apply:os.getcwd []"),
        "is not allowed",
    ),
    "brackets without an end": (
        bent("precision: fp32", "precision: " + "[" * 3000),
        "nested too deeply",
    ),
    "signs without an end": (
        bent("grid: [", f'grid: ["{"-" * 390}1", '),
        "expected at most 100 levels of nesting",
    ),
    "a tower of powers": (bent("grid: [", 'grid: ["9**9**9**9**9", '), "an exponent is beyond 64"),
    "a number of 5,000 digits": (
        bent("BLOCK: [128, 64]", f"BLOCK: [{'9' * 5000}]"),
        "expected a whole number",
    ),
    "a NUL in a name": (bent("name: wanted", 'name: "a\\0b"'), "name: expected letters, digits"),
    "an unclosed header a thousand times": (
        fenced("\n/* evoengine\n" * 1000),
        "this one is not closed by '*/'",
    ),
    "nothing but stars": ("/" + "*" * 200_000 + "/", "the reply holds no code block"),
    "nothing but comments": ("// " * 200_000, "the reply holds no code block"),
    "a fence before 200,000 blanks": ("```" + " " * 200_000 + "`", "the reply holds no code block"),
    "more than anybody writes": ("x" * 4_000_001, "the reply has 4000001 characters"),
}

# What only a compiler or a device can judge: any verdict will do, as long as it is one.
JUDGED: dict[str, str] = {
    "a log that is not UTF-8": with_code('#pragma message "\\xff\\xfe"'),
    "an error that is not UTF-8": with_code('static_assert(false, "\\xff\\xfe");'),
    "terminal codes in an error": with_code("#error \x9b2J [/bold] \u2028 \u0085 {{ 7 * 7 }}"),
    "an error of nothing": with_code("#error"),
    "a macro called defined": bent("launches:", "constants: {defined: 1}\nlaunches:"),
    "a macro called __global__": bent("launches:", "constants: {__global__: 1}\nlaunches:"),
    "a kernel of nothing": bent("kernel: scale", "kernel: 'scale::'"),
    "a kernel that is a type": (
        bent("kernel: scale", "kernel: int").replace('extern "C"', 'struct X; extern "C"')
    ),
    "more arguments than a kernel can have": bent(
        "args: [x, y, N]", "args: [" + ", ".join(["1"] * 3000) + "]"
    ),
    "an argument that no half can hold": bent(
        "args: [x, y, N]", "args: [x, y, {value: 1e18, dtype: float16}]"
    ),
    "700 scratch buffers": bent(
        "launches:",
        "scratch:\n"
        + "".join(f"  s{i}: {{dtype: int8, shape: [1]}}\n" for i in range(700))
        + "launches:",
    ),
    "brackets that no parser follows": with_code(
        "__device__ int q = " + "(" * 50000 + "1" + ")" * 50000 + ";"
    ),
    "assembly that ends its function": (
        with_code('__device__ void f() { asm volatile("ret; }\\n.entry scale () {"); }').replace(
            "y[i] = 2", "f(); y[i] = 2"
        )
    ),
    "a name that no assembler takes": (
        with_code('__device__ int odd asm("a b\\"c");').replace("y[i] = 2", "odd = 1; y[i] = 2")
    ),
    "calls that never end": (
        with_code(
            "__device__ __noinline__ int f(int n) { volatile int a[100]; a[n & 63] = n; return f(n"
            " + a[n & 63]) + 1; }"
        ).replace("y[i] = 2", "y[i] = f(n) + 2")
    ),
    "a comment without an end": bent("y[i] = 2 * x[i];\n}", "y[i] = 2 * x[i];\n} /*"),
    "a trap": with_code("").replace("long long i", "__trap(); long long i"),
    "characters that no locale has": (
        with_code("#include <cstdio>").replace(
            "long long i", 'if (n == 77) printf("%c \\xff\\n", 233); long long i'
        )
    ),
    "a grid without end": bent("ceil_div(N, BLOCK)", "2147483647"),
}

# ---------------------------------------------------------------- bent by chance

BASES = [
    *[fenced(BRIEF)] * 60,  # most of what is changed a little should come as far as a compiler
    *[fenced(KERNEL)] * 10,
    *(path.read_bytes().decode() for path in sorted(CORPUS.iterdir())),
    *(fenced(path.read_text(encoding="utf-8")) for path in sorted(SEEDS.glob("*.cu"))),
]

TOKENS = [
    *(
        "\0",
        "\ud800",
        "\udfff",
        "\u2028",
        "\x85",
        "\ufeff",
        "\x1b[2J",
        "\r",
        "\r\n",
        "\t",
        "\x0c",
        "é",
        "\U0001d54f",
        "\u202e",
        "\x80",
    ),
    *(
        "*/",
        "/*",
        "//",
        "```",
        "~~~",
        "</think>",
        "## Thoughts\n- ",
        "/* evoengine\n",
        "{{ 7 * 7 }}",
        "{% raw %}",
        "${HOME}",
        "%s%n",
    ),
    *(
        "&a ",
        "*a",
        "!!python/name:os.system ",
        "<<: *a\n",
        "? ",
        "- ",
        ": ",
        "{",
        "}",
        "[",
        "]",
        "|\n",
        ">\n",
        "'",
        '"',
        "#",
        "%YAML 9\n",
        "---\n",
    ),
    *(
        ".inf",
        ".nan",
        "1e999",
        "-0",
        "0x" + "f" * 40,
        "9" * 30,
        "9" * 5000,
        "2**63",
        "2**64-1",
        "-9223372036854775807",
        "1/0",
        "0 ** -1",
    ),
    *(
        "true",
        "null",
        "~",
        "not ",
        "x if y else z",
        "(" * 200,
        "[" * 400,
        "min(" * 50,
        "sqrt(-1)",
        "<",
        ">",
        "::",
        "<1, 2>",
        "a" * 500,
        "N" * 5000,
    ),
    *(
        "#include <vector>\n",
        '#line 1 "x"\n',
        "%:include <a>\n",
        "??=include <a>\n",
        "\\\n",
        "__has_include(<a>)",
        "#pragma once\n",
        "#if 0\n",
    ),
    *(
        "../../etc/passwd",
        "; DROP TABLE trials",
        "name: .x\n",
        "name: -x\n",
        "precision: fp64\n",
        "tunables: {}\n",
        "shared: 2**40\n",
        "<" * 1000,
    ),
]
CODE = [
    *(
        '#pragma message "\\xff\\xfe"\n',
        "#error \x80\n",
        'static_assert(false, "\\xff");\n',
        "#if 0\n",
        "/*",
        "#define x y\n",
        "#undef __global__\n",
    ),
    *(
        "template <int N> struct R { enum { v = R<N + 1>::v }; }; __device__ int q = R<0>::v;\n",
        "{" * 3000,
        "(" * 3000,
        "}",
        ";",
        "\x01",
        "é",
    ),
    *(
        'asm(".global .b8 hidden[4];");\n',
        'asm volatile("bogus;");',
        'asm volatile("}\\n.entry g() {");',
        "__trap();",
        "__syncthreads();",
        "goto x;",
    ),
    *(
        "__shared__ float s[99999];",
        "float s[1 << 28];",
        "__device__ char big[70000];\n",
        "malloc(8);",
        "1e999",
        "0x",
        "'",
        '"',
        "\\",
        'R"(',
        'u8"\xff"',
    ),
    *(
        "#include <cstdio>\n",
        "#include <cuda_fp16.h>\n",
        "__launch_bounds__(0)",
        'extern "C++" {',
        "namespace {",
        "operator",
        "[[noreturn]]",
        "co_await",
    ),
]

_HEADER_KEY = re.compile(
    r"^(?:name|precision|summary|tunables|launches|let|scratch|constants|require):.*$", re.MULTILINE
)
_NUMBER = re.compile(r"\d+")

Change = tuple[int, int, int, int]  # which, where, how far, with what


def _cut(text: str, at: int, length: int, token: str) -> str:
    return text[:at] + text[at + length :]


def _insert(text: str, at: int, length: int, token: str) -> str:
    return text[:at] + token + text[at:]


def _replace(text: str, at: int, length: int, token: str) -> str:
    return text[:at] + token + text[at + length :]


def _double(text: str, at: int, length: int, token: str) -> str:
    return text[: at + length] + text[at:]


def _repeat(text: str, at: int, length: int, token: str) -> str:
    return text[:at] + text[at : at + 8] * (length * 8) + text[at + 8 :]


def _other_number(text: str, at: int, length: int, token: str) -> str:
    return (
        _NUMBER.sub(lambda _: token, text[at:], count=1)
        if at == 0
        else text[:at] + _NUMBER.sub(lambda _: token, text[at:], count=1)
    )


def _other_value(text: str, at: int, length: int, token: str) -> str:
    found = _HEADER_KEY.search(text, at)
    return (
        text
        if found is None
        else text[: found.start()] + found[0].partition(":")[0] + ": " + token + text[found.end() :]
    )


def _swap(text: str, at: int, length: int, token: str) -> str:
    lines = text.split("\n")
    one, other = at % len(lines), (at + length) % len(lines)
    lines[one], lines[other] = lines[other], lines[one]
    return "\n".join(lines)


CHANGES: list[Callable[[str, int, int, str], str]] = [
    _insert,
    _replace,
    _cut,
    _double,
    _repeat,
    _other_number,
    _other_value,
    _swap,
]


def mutated(
    base: int,
    changes: list[Change],
    tokens: list[str] = TOKENS,
    bases: list[str] = BASES,
    begin: str = "",
) -> str:
    """One of the bases with some changes; only what follows `begin` is changed."""
    whole = bases[base % len(bases)]
    head, found, text = whole.partition(begin) if begin else ("", "", whole)
    for which, where, length, token in changes:
        at = where * len(text) >> 16
        text = CHANGES[which % len(CHANGES)](
            text, at, 1 + length % 40, tokens[token % len(tokens)]
        )[:40_000]
    return head + found + text
