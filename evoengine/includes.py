"""The headers that a candidate may include, and the first one that it may not.

NVRTC would open any file of the machine and quote it in its log, so a candidate names
headers of this set only.
"""

from __future__ import annotations

import re

ALLOWED_INCLUDES = (
    "cuda_fp16.h",
    "cuda_bf16.h",
    "cuda_fp8.h",
    "mma.h",
    "cuda_pipeline.h",
    "cuda_pipeline_primitives.h",
    "cooperative_groups.h",
    "stdint.h",
)

_INCLUDE = re.compile(r"^[ \t]*(?:#|%:)[ \t]*include(?:_next)?\b[ \t]*(.*)$", re.MULTILINE)
_NAMED = re.compile(r"<([^<>\n]+)>|\"([^\"\n]+)\"")


def refused_include(code: str) -> tuple[int, str] | None:
    """The line and the words of the first include directive outside the set; None when all are in it."""
    for match in _INCLUDE.finditer(code):
        words = match[1].strip()
        named = _NAMED.match(words)
        if not named or (named[1] or named[2]).strip() not in ALLOWED_INCLUDES:
            return code.count("\n", 0, match.start()) + 1, words
    return None
