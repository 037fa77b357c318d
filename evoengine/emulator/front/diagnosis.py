"""Turns clang's log into an error with the candidate's lines, and finds names missing from our
headers.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence

from evoengine.emulator.emulator_errors import CompileFailed
from evoengine.emulator.front import cuda_names, overlay, translation_unit

_APPENDED = re.compile(
    rf"^{translation_unit.FILE}:(\d+):\d+: (?:fatal )?error: (.*)$", re.MULTILINE
)
_MISSING = re.compile(
    r"error: (?:(?:use of undeclared identifier|unknown type name|no member named|no template"
    r" named|no type named|"
    r"reference to __host__ variable) )?'([\w./-]+)'(?P<rest>.*)$",
    re.MULTILINE,
)
_MEMBER = re.compile(r"in '(?:const )?(?:std|cuda|nvcuda|cooperative_groups)::")
_KERNEL = re.compile(
    r"__global__\s+(?:(?:__\w+(?:\((?:[^()]|\([^()]*\))*\))?|void|static|inline|extern\s+\"C\")\s+)*\s*([A-Za-z_]\w*)\s*\("
)
_SUMMARY = re.compile(r"^\d+ (?:error|warning)s?\b.* generated.*\n?", re.MULTILINE)
_OUTSIDE = rf"(?:{overlay.INCLUDE}/|{overlay.SOURCE}|<scratch space>|<built-in>)"
_OF_HEADERS = re.compile(
    rf"^(?:{_OUTSIDE}.*: note: .*|In file included from {_OUTSIDE}.*)\n?", re.MULTILINE
)


def failure(
    log: str, name: str, source: str, kernels: Sequence[str], ours: Callable[[], Collection[str]]
) -> CompileFailed:
    """The error to raise for clang's `log` about `source`; `ours` returns the identifiers of our
    headers.
    """
    log = _cleaned(log)
    missing = missing_names(log, ours)
    if missing:
        return CompileFailed(
            f"the emulator's headers lack {', '.join(missing)}\n{log}", lacking=True
        )
    appended = {int(line) - 1: message for line, message in _APPENDED.findall(log)}
    # A #line directive in a source may use our file's name.
    if (
        appended
        and max(appended) < len(kernels)
        and len(appended) == len(re.findall(r": (?:fatal )?error: ", log))
    ):
        log = "\n".join(
            f"{name}: error: {_no_kernel_message(kernels[index], text)}{known_kernels(source)}"
            for index, text in sorted(appended.items())
        )
    return CompileFailed(log or f"{name}: error: the compiler failed without a message")


def _no_kernel_message(kernel: str, message: str) -> str:
    if "overloaded function" in message and "<" not in kernel:
        return (
            f"{kernel} is the name of several functions or of a template; give the kernel a name of"
            " its own, or its template arguments"
        )
    return f"found no kernel {kernel} ({message})"


def missing_names(log: str, ours: Callable[[], Collection[str]]) -> list[str]:
    """The names that `log` misses and that CUDA has but our headers do not, in order, without
    repetition.
    """
    found = []
    for match in _MISSING.finditer(log):
        name, rest = match[1], match["rest"]
        if "file not found" in rest:
            if cuda_names.is_header(name):
                found.append(f"<{name}>")
        elif "reference to __host__ variable" in match[0]:
            found.append(
                f"global variables without __device__ or __constant__ (write it before {name})"
            )
        elif "did you mean" in rest:  # a misspelling, or a missing #include
            continue
        elif _MEMBER.search(rest) or (cuda_names.is_name(name, rest) and name not in ours()):
            found.append(name)
    return list(dict.fromkeys(found))


def known_kernels(source: str) -> str:
    """The end of a message that lists the kernels of `source`."""
    names = sorted(set(_KERNEL.findall(source)))
    return f"; kernels here: {', '.join(names)}" if names else "; the source has no kernel"


def _cleaned(log: str) -> str:
    """The log without the summary, the command line of a crash, and locations in our headers."""
    text = _SUMMARY.sub("", log.partition("PLEASE submit a bug report")[0])
    return _OF_HEADERS.sub("", text).replace(f"{overlay.INCLUDE}/", "").strip()
