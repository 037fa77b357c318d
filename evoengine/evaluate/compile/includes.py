"""What a candidate may include, decided on its text before any compiler sees it.

NVRTC opens any file of the machine that is included and quotes its lines in the log, so
everything but the shipped headers is refused. The check does not decide which lines are
compiled: it looks at every `#`, in comments, strings and skipped branches too, and under
every reading of line splices and trigraphs. So it may refuse a harmless oddity, but has no
state that a text could mislead.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from evoengine.errors import CandidateError

SHIM = Path(__file__).parent / "shim"
PRELUDE = "evoengine_prelude.h"

# CUDA headers that work in device code without a host; every one was compiled with NVRTC 13.5.
# fmt: off
_CUDA = [
    "cuda_fp16.h", "cuda_bf16.h", "cuda_fp8.h", "cuda_fp6.h", "cuda_fp4.h", "mma.h",
    "cuda_pipeline.h", "cuda_pipeline_primitives.h",
    "cuda_awbarrier.h", "cuda_awbarrier_primitives.h", "cooperative_groups.h",
    "cooperative_groups/memcpy_async.h",
    "cooperative_groups/reduce.h", "cooperative_groups/scan.h", "cuda_runtime.h",
    "cuda_runtime_api.h",
    "device_launch_parameters.h", "cuda.h", "math_constants.h", "vector_types.h",
    "vector_functions.h", "cuComplex.h",
    "library_types.h", "builtin_types.h", "driver_types.h", "device_types.h",
    "device_atomic_functions.h", "sm_20_intrinsics.h", "sm_30_intrinsics.h", "sm_32_intrinsics.h",
    "sm_35_intrinsics.h", "sm_60_atomic_functions.h", "sm_61_intrinsics.h", "nv/target",
]
# fmt: on

# Public libcu++ headers. CUB and Thrust stay out: they include through macros that a candidate
# could define.
# fmt: off
_LIBCUDACXX = [
    "access_property", "algorithm", "annotated_ptr", "atomic", "barrier", "bit", "cmath",
    "discard_memory", "functional", "iterator",
    "latch", "mdspan", "memory", "numeric", "pipeline", "ptx", "semaphore", "tma", "type_traits",
    "utility", "version", "warp",
    "work_stealing", "std/algorithm", "std/array", "std/atomic", "std/barrier", "std/bit",
    "std/bitset", "std/cassert", "std/cfloat",
    "std/chrono", "std/climits", "std/cmath", "std/complex", "std/concepts", "std/cstddef",
    "std/cstdint", "std/cstdlib", "std/cstring",
    "std/ctime", "std/expected", "std/functional", "std/initializer_list", "std/inplace_vector",
    "std/iterator", "std/latch",
    "std/limits", "std/linalg", "std/mdspan", "std/memory", "std/numbers", "std/numeric",
    "std/optional", "std/random", "std/ranges",
    "std/ratio", "std/semaphore", "std/source_location", "std/span", "std/string_view", "std/tuple",
    "std/type_traits", "std/utility",
    "std/variant", "std/version",
]
# fmt: on

# Headers that are refused though models ask for them: what to use instead.
_INSTEAD = {
    "cuda_tf32.h": (
        "CUDA has it from 13.3 on and for tile code alone; tf32 of tensor cores is in <mma.h> "
        "(nvcuda::wmma::precision::tf32, __float_to_tf32)"
    )
}

_MARK = re.compile(r"\#|%:|\?\?=")
_BLANKS = re.compile(r"\s*+")
_WORD = re.compile(r"[A-Za-z_]\w*+")
_INCLUDE = re.compile(r"""[ \t]*+(?:<([^<>"\n]*+)>|"([^<>"\n]*+)")""")
_QUESTION = re.compile(r"\b(__has_include(?:_next)?|__has_embed)\b")
_REFUSED = {"include_next", "import", "embed", "using", "line"}
_TRIGRAPHS = {
    "??=": "#",
    "??/": "\\",
    "??'": "^",
    "??(": "[",
    "??)": "]",
    "??!": "|",
    "??<": "{",
    "??>": "}",
    "??-": "~",
}


class IncludeRefused(CandidateError):  # noqa: N818 - says what happened to it
    """The source would use a file that it may not; the text says where and what is allowed."""


@cache
def allowed_headers() -> frozenset[str]:
    """The names that may stand between <> or \"\"."""
    shim = {path.name for path in SHIM.iterdir() if path.is_file() and path.name != PRELUDE}
    return frozenset(shim | set(_CUDA) | {f"cuda/{name}" for name in _LIBCUDACXX})


def check_includes(code: str, name: str = "kernel.cu") -> None:
    """Returns when `code` includes allowed headers only; raises IncludeRefused with `name`:line."""
    try:
        code.encode()
    except UnicodeEncodeError as error:
        raise IncludeRefused(
            f"{name}:{code.count(chr(10), 0, error.start) + 1}: expected text, got"
            f" {code[error.start : error.end]!r}"
        ) from None
    if "\0" in code:
        raise IncludeRefused(
            f"{name}:{code.count(chr(10), 0, code.index(chr(0))) + 1}: holds a NUL character;"
            " remove it"
        )
    for text, lines in _readings(code):
        for position, reason in _offences(text):
            raise IncludeRefused(f"{name}:{lines(position)}: {reason}")


def _offences(text: str) -> Iterator[tuple[int, str]]:
    gaps = _Gaps(text)
    for mark in _MARK.finditer(text):
        position = gaps.after(mark.end())
        word = _WORD.match(text, position)
        if word is None:
            if text[position : position + 1].isdigit() and gaps.begins_line(mark.start()):
                yield (
                    mark.start(),
                    (
                        "a line marker (# 12) is not allowed; messages must name the candidate's"
                        " own lines"
                    ),
                )
        elif word[0] == "include":
            header = _INCLUDE.match(text, word.end())
            reason = (
                _refusal(header[1] or header[2] or "")
                if header
                else "expected a literal #include <header> on one line, got another form"
            )
            if reason:
                yield mark.start(), reason
        elif word[0] in _REFUSED:
            yield (
                mark.start(),
                f"#{word[0]} is not allowed; #include <header> is the only way to use another file",
            )
    for match in _QUESTION.finditer(text):
        yield (
            match.start(),
            f"{match[1]} is not allowed: what a kernel does must not depend on the machine's files",
        )


class _Gaps:
    """Blanks and comments around a `#`, found in linear time even for a hostile text."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._closers = [match.start() for match in re.finditer(r"\*/", text)]
        self._known: dict[int, int] = {}

    def after(self, position: int) -> int:
        """Where the blanks and comments that begin at `position` end."""
        path = []
        while position not in self._known:
            path.append(position)
            position = _end(_BLANKS, self.text, position)
            closer = bisect_left(self._closers, position + 2)
            if not self.text.startswith("/*", position) or closer == len(self._closers):
                self._known[position] = position
                break
            position = self._closers[closer] + 2
        end = self._known[position]
        self._known.update(dict.fromkeys(path, end))
        return end

    def begins_line(self, position: int) -> bool:
        """Whether only blanks, or the end of a comment, come before `position` on its line."""
        while (
            position > 0 and self.text[position - 1] != "\n" and self.text[position - 1].isspace()
        ):
            position -= 1
        return (
            position == 0
            or self.text[position - 1] == "\n"
            or self.text.startswith("*/", position - 2)
        )


def _end(pattern: re.Pattern[str], text: str, position: int) -> int:
    match = pattern.match(text, position)
    return match.end() if match else position


def _refusal(header: str) -> str:
    """Why `header` is refused, the allowed ones on a second line; empty if it is allowed."""
    known = allowed_headers()
    if header in known:
        return ""
    if header in _INSTEAD:
        return f"#include of {header!r} is not allowed: {_INSTEAD[header]}"
    plain = ", ".join(sorted(item for item in known if "/" not in item))
    return f"#include of {header!r} is not allowed\nallowed: {plain}, <cuda/...>, <cuda/std/...>"


class _Lines:
    """Positions in a text from which splices were cut, as lines of the original."""

    def __init__(self, cuts: list[tuple[int, int]], text: str) -> None:
        self.cuts = cuts  # (position in `text`, lines cut there)
        self.text = text

    def __call__(self, position: int) -> int:
        return (
            1
            + self.text.count("\n", 0, position)
            + sum(lines for place, lines in self.cuts if place <= position)
        )


def _readings(code: str) -> Iterator[tuple[str, _Lines]]:
    """The code as different compilers would join its lines: none, strict, with blanks after the
    backslash, with trigraphs.
    """
    untangled = code
    for three, one in _TRIGRAPHS.items():
        untangled = untangled.replace(three, one)
    yield code, _Lines([], code)
    seen = {code}
    for text, splice in (
        (code, r"\\\r?\n"),
        (code, r"\\[^\S\n]*+\n"),
        (code, r"\\[^\S\r\n]*+(?:\r\n?|\n)"),
        (untangled, r"\\[^\S\n]*+\n"),
    ):
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
