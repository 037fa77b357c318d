"""What clang complained about: a log with the candidate's lines, and whether our headers are to blame."""

from __future__ import annotations

import re
from collections.abc import Sequence

from evoengine.emulator.errors import CompileFailed
from evoengine.emulator.front import cuda_names, unit

_APPENDED = re.compile(rf"^{unit.FILE}:(\d+):\d+: (?:fatal )?error: (.*)$", re.MULTILINE)
_MISSING = re.compile(
    r"error: (?:use of undeclared identifier|unknown type name|no member named|no template named|no type named|"
    r"no member|unknown attribute)? ?'([\w:./-]+)'(?P<rest>.*)$",
    re.MULTILINE,
)
_KERNEL = re.compile(r"__global__\s+(?:(?:__\w+(?:\([^()]*\))?|void|static|inline|extern\s+\"C\")\s+)*\s*([A-Za-z_]\w*)\s*\(")
_NOISE = re.compile(r"^(?:\d+ (?:errors?|warnings?).* generated.*|In file included from <built-in>.*|In file included from /source\.cu.*)\n", re.MULTILINE)


def failure(log: str, name: str, source: str, kernels: Sequence[str]) -> CompileFailed:
    """The error to raise for clang's `log` about `source`."""
    log = _cleaned(log)
    lacked = lacking(log)
    if lacked:
        return CompileFailed(f"the emulator's headers lack {', '.join(lacked)}\n{log}", lacking=True)
    appended = {int(line) - 1: message for line, message in _APPENDED.findall(log)}
    if appended and len(appended) == len(re.findall(r"error: ", log)):
        log = "\n".join(
            f"{name}: error: found no kernel {kernels[index]}: {message}{known(source)}" for index, message in sorted(appended.items())
        )
    return CompileFailed(log or f"{name}: error: the compiler failed and said nothing")


def lacking(log: str) -> list[str]:
    """The names in `log` that CUDA has and our headers have not, in order and once."""
    names = []
    for match in _MISSING.finditer(log):
        guessed = "did you mean" in match["rest"]
        header = "file not found" in match["rest"]
        if cuda_names.is_header(match[1]) if header else cuda_names.is_name(match[1], match["rest"], guessed):
            names.append(f"<{match[1]}>" if header else match[1])
    return list(dict.fromkeys(names))


def known(source: str) -> str:
    """The end of a message that lists the kernels of `source`."""
    names = sorted(set(_KERNEL.findall(source)))
    return f"; kernels here: {', '.join(names)}" if names else "; there is no kernel here"


def _cleaned(log: str) -> str:
    """Without the summary and without what a crash prints about the command."""
    return _NOISE.sub("", log.partition("PLEASE submit a bug report")[0]).strip()
