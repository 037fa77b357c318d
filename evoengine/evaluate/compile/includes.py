"""What a candidate may include, decided on its text before any compiler sees it.

NVRTC opens any file of the machine that is included and quotes its lines in the log, so
everything but the shipped headers is refused. The check does not try to know which lines
are live: it looks at every `#` there is, in comments, strings and skipped branches alike,
and under every reading of line splices and trigraphs. So it can refuse a harmless oddity,
but there is no state to lead astray.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

SHIM = Path(__file__).parent / "shim"
PRELUDE = "evoengine_prelude.h"

# CUDA headers that work in device code without a host; every one was compiled with NVRTC 13.5.
_CUDA = """
    cuda_fp16.h cuda_bf16.h cuda_fp8.h cuda_fp6.h cuda_fp4.h mma.h cuda_pipeline.h cuda_pipeline_primitives.h cuda_awbarrier.h
    cuda_awbarrier_primitives.h cooperative_groups.h cooperative_groups/memcpy_async.h cooperative_groups/reduce.h cooperative_groups/scan.h
    cuda_runtime.h cuda_runtime_api.h cuda_device_runtime_api.h device_launch_parameters.h cuda.h cuda_tf32.h math_constants.h
    vector_types.h vector_functions.h cuComplex.h library_types.h nv/target
""".split()

# Public libcu++ headers. CUB and Thrust stay out: they include through macros that a candidate could define.
_LIBCUDACXX = """
    access_property algorithm annotated_ptr atomic barrier bit cmath discard_memory functional iterator latch mdspan memory numeric
    pipeline ptx semaphore tma type_traits utility version warp work_stealing
    std/algorithm std/array std/atomic std/barrier std/bit std/bitset std/cassert std/cfloat std/chrono std/climits std/cmath std/complex
    std/concepts std/cstddef std/cstdint std/cstdlib std/cstring std/ctime std/expected std/functional std/initializer_list
    std/inplace_vector std/iterator std/latch std/limits std/linalg std/mdspan std/memory std/numbers std/numeric std/optional std/random
    std/ranges std/ratio std/semaphore std/source_location std/span std/string_view std/tuple std/type_traits std/utility std/variant
    std/version
""".split()

_GAP = r"(?:\s|/\*.*?\*/)*"
_DIRECTIVE = re.compile(rf"(?:\#|%:|\?\?=){_GAP}([A-Za-z_]\w*)", re.DOTALL)
_INCLUDE = re.compile(r"""[ \t]*(?:<([^<>"\n]*)>|"([^<>"\n]*)")""")
_LINE_MARK = re.compile(rf"(?:^|\*/)\s*(?:\#|%:|\?\?=){_GAP}[0-9]", re.DOTALL | re.MULTILINE)
_QUESTION = re.compile(r"\b(__has_include(?:_next)?|__has_embed)\b")
_REFUSED = {"include_next", "import", "embed", "using", "line"}
_TRIGRAPHS = {"??=": "#", "??/": "\\", "??'": "^", "??(": "[", "??)": "]", "??!": "|", "??<": "{", "??>": "}", "??-": "~"}


@cache
def allowed_headers() -> frozenset[str]:
    """The names that may stand between <> or \"\"."""
    shim = {path.name for path in SHIM.iterdir() if path.is_file() and path.name != PRELUDE}
    return frozenset(shim | set(_CUDA) | {f"cuda/{name}" for name in _LIBCUDACXX})


def check_includes(code: str, name: str = "kernel.cu") -> str | None:
    """Why `code` is refused, with its line; None when it includes allowed headers only."""
    if "\0" in code:
        return f"{name}:{code.count(chr(10), 0, code.index(chr(0))) + 1}: holds a NUL character; remove it"
    for text, lines in _readings(code):
        for position, reason in _offences(text):
            return f"{name}:{lines(position)}: {reason}"
    return None


def _offences(text: str) -> Iterator[tuple[int, str]]:
    for match in _DIRECTIVE.finditer(text):
        keyword = match[1]
        if keyword == "include":
            header = _INCLUDE.match(text, match.end())
            reason = _refusal(header[1] or header[2] or "") if header else "expected a literal #include <header> on one line, got another form"
            if reason:
                yield match.start(), reason
        elif keyword in _REFUSED:
            yield match.start(), f"#{keyword} is not allowed; #include <header> is the only way to use another file"
    for match in _LINE_MARK.finditer(text):
        yield match.end() - 1, "a line marker (# 12) is not allowed; messages must name the candidate's own lines"
    for match in _QUESTION.finditer(text):
        yield match.start(), f"{match[1]} is not allowed: what a kernel does must not depend on the machine's files"


def _refusal(header: str) -> str:
    """Why this header is refused; empty when it is allowed."""
    known = allowed_headers()
    if header in known:
        return ""
    return f"#include of {header!r} is not allowed; allowed: {', '.join(sorted(item for item in known if '/' not in item))}, <cuda/...>, <cuda/std/...>"


class _Lines:
    """Positions in a text from which splices were cut, as lines of the original."""

    def __init__(self, cuts: list[tuple[int, int]], text: str) -> None:
        self.cuts = cuts  # (position in `text`, lines cut there)
        self.text = text

    def __call__(self, position: int) -> int:
        return 1 + self.text.count("\n", 0, position) + sum(lines for place, lines in self.cuts if place <= position)


def _readings(code: str) -> Iterator[tuple[str, _Lines]]:
    """The code as different compilers would join its lines: none, strict, with blanks after the backslash, with trigraphs."""
    untangled = code
    for three, one in _TRIGRAPHS.items():
        untangled = untangled.replace(three, one)
    yield code, _Lines([], code)
    seen = {code}
    for text, splice in ((code, r"\\\r?\n"), (code, r"\\\s*?\n"), (code, r"\\[^\S\n]*(?:\r|\n)"), (untangled, r"\\[^\S\n]*\n")):
        spliced, cuts = _splice(text, splice)
        if spliced not in seen:
            seen.add(spliced)
            yield spliced, _Lines(cuts, spliced)


def _splice(text: str, splice: str) -> tuple[str, list[tuple[int, int]]]:
    pieces, cuts, last, length = [], [], 0, 0
    for match in re.finditer(splice, text):
        pieces.append(text[last : match.start()])
        length += match.start() - last
        cuts.append((length, match[0].count("\n")))
        last = match.end()
    return "".join([*pieces, text[last:]]), cuts
