"""Two files have one normal form only if a compiler cannot tell them apart."""

from __future__ import annotations

import pytest

from evoengine.candidate import kernel_file
from evoengine.candidate.normal_form import normal_digest
from evoengine.paths import seeds_dir

HEADER = """\
/* evoengine
name: scale
precision: fp32
summary: one thread an element
tunables:
  THREADS: [128, 256]
  ROWS: [1, 2]
launches:
  - kernel: scale
    grid: ["ceil_div(N, THREADS)"]
    block: [THREADS]
    args: [x, out, N]
*/
"""
CODE = """\
#include <cuda_fp16.h>
#include <mma.h>
#define TWICE(x) ((x) + \\
                  (x))
__global__ void scale(const float* x, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x; // the element
    if (i < n) out[i] = TWICE(x[i]); /* both
       halves */
    asm volatile("mov.u32 %0, %1;" : "=r"(i) : "r"(i));
}
"""
WHOLE = HEADER + CODE


def digest_of(source: str) -> str:
    return normal_digest(kernel_file.parse(source))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (" // the element", ""),
        ("/* both\n       halves */", "// nothing"),
        ("blockIdx.x * blockDim.x", "blockIdx.x*blockDim.x"),
        ("int i = ", "int\n  i= "),
        ("((x) + \\\n                  (x))", "((x) + (x))"),
        ("#include <cuda_fp16.h>\n#include <mma.h>", "#include <mma.h>\n\n#include <cuda_fp16.h>"),
        ("#define", "  #  define"),
        ("name: scale", "name: other"),
        ("summary: one thread an element", "summary: vectorised"),
        ("precision: fp32\n", "# a remark\nprecision: fp32\n"),
        ("  THREADS: [128, 256]\n  ROWS: [1, 2]\n", "  ROWS: [1, 2]\n  THREADS: [128, 256]\n"),
        ("precision: fp32\nsummary: one thread an element\n", "precision: fp32\n"),
        ("THREADS: [128, 256]", "THREADS: [256, 128]"),
    ],
)
def test_what_a_compiler_never_sees_does_not_count(old: str, new: str) -> None:
    assert old in WHOLE
    assert digest_of(WHOLE.replace(old, new)) == digest_of(WHOLE)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("i < n", "i <= n"),
        ("mov.u32 %0, %1;", "mov.u32 %0,  %1;"),
        ("TWICE(x) (", "TWICE (x) ("),
        ("(x) + \\\n", "(x) \\\n"),
        ("THREADS: [128, 256]", "THREADS: [128, 512]"),
        ("THREADS: [128, 256]", "THREADS: [128, 256, 512]"),
        ("precision: fp32", "precision: fp16"),
        ("args: [x, out, N]", "args: [out, x, N]"),
        ("int i =", "int\n#define n 4\n i ="),
        ("#include <mma.h>\n#define", "#define A 1\n#include <mma.h>\n#define"),
        ("+ threadIdx.x", "+ + threadIdx.x"),
        ("    if (i < n)", "    // if (i < n)"),
        ("i < n", "i < 1e+2"),
    ],
)
def test_what_a_compiler_can_tell_apart_counts(old: str, new: str) -> None:
    assert old in WHOLE
    assert digest_of(WHOLE.replace(old, new, 1)) != digest_of(WHOLE)


def test_increments_and_two_signs_are_told_apart() -> None:
    pairs = [("n + +n", "n++n"), ("n - -n", "n--n"), ("n / *x", "n /*x"), ("1 e", "1e")]
    for first, second in pairs:
        assert digest_of(f"{HEADER}int a = {first};") != digest_of(f"{HEADER}int a = {second};")


@pytest.mark.parametrize(
    ("first", "second"),
    [
        # the first is an error of a compiler, which a model mends as in the second
        ('asm("mov"TYPE" %0;");', 'asm("mov" TYPE " %0;");'),
        ("int\u00a0a;", "int a;"),
        ("int a = b. *c;", "int a = b.*c;"),
        ("int a = b < :0: >;", "int a = b <:0:>;"),
        # a prefix, and a macro with its name
        ('auto a = L"x";', 'auto a = L "x";'),
        ("auto a = u8'x';", "auto a = u8 'x';"),
        # names in other letters
        ("int a\u00e9;", "int a \u00e9;"),
        ("int a\\u00e9;", "int a \\u00e9;"),
        ("int a = 1\u00e9;", "int a = 1 \u00e9;"),
    ],
)
def test_what_stands_together_counts_where_a_blank_would_part_it(first: str, second: str) -> None:
    assert digest_of(HEADER + first) != digest_of(HEADER + second)


@pytest.mark.parametrize(
    "code",
    [
        "int line = __LINE__;",
        "int line = __LI\\\nNE__;",
        "int line = __builtin_LINE();",
        'const char* text = R\\\n"( a  b )";',
        "#define JOINED(a, b) a ## b\nint line = JOINED(__LI, NE__);",
        "%:define JOINED(a, b) a %:%: b\nint line = JOINED(__LI, NE__);",
    ],
)
def test_code_that_names_its_lines_is_compared_as_it_is(code: str) -> None:
    source = WHOLE + code
    assert digest_of(source.replace(" // the element", "")) != digest_of(source)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("#define TEXT(x) #x\nasm(TEXT(a + b));", "#define TEXT(x) #x\nasm(TEXT(a+b));"),
        ("%:define TEXT(x) %:x\nasm(TEXT(a + b));", "%:define TEXT(x) %:x\nasm(TEXT(a+b));"),
        ("%:define ONE (x) 1\nint a = ONE(2);", "%:define ONE(x) 1\nint a = ONE(2);"),
        ("??=define ONE (x) 1\nint a = ONE(2);", "??=define ONE(x) 1\nint a = ONE(2);"),
    ],
)
def test_blanks_count_where_a_macro_makes_text_or_has_another_sign(first: str, second: str) -> None:
    assert digest_of(HEADER + first) != digest_of(HEADER + second)


@pytest.mark.parametrize("end", ["\\ ", "\\\t", "??/"])
def test_a_line_that_not_every_compiler_goes_on_with_is_compared_as_it_is(end: str) -> None:
    remark = f"// note {end}\nint a = 1;\n"
    for other in ("// note\nint a = 1;\n", "// note int a = 1;\n"):
        assert digest_of(HEADER + remark) != digest_of(HEADER + other)


def test_seeds_differ_in_their_normal_forms() -> None:
    digests = [normal_digest(kernel_file.read(path)) for path in seeds_dir().glob("*.cu")]
    assert len(set(digests)) == len(digests) > 3


@pytest.mark.parametrize("piece", ['"\\', "/*", "/", "'\\", "#", "\\ ", '"a'])
def test_a_hostile_text_is_read_once(piece: str) -> None:
    """A reading that went back would take hours here."""
    assert digest_of(HEADER + piece * 60_000)
