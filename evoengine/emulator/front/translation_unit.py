"""The translation unit that clang compiles: headers, macros, the source, kernel expressions.

After the source, a variable for each kernel expression ("sdpa<64, true>") holds its address: this
instantiates templates, and the PTX has the kernel's symbol as the variable's initial value.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from evoengine.emulator.front import overlay

FILE = "kernel expressions"  # file name of the appended lines in messages
_VARIABLE = "__ev_kernel_"
# there is no host code: unannotated functions are device functions
_DEVICE_BY_DEFAULT = "#pragma clang force_cuda_host_device begin"
_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*[<"]([\w./]+)[>"]', re.MULTILINE)
_ADDRESS = re.compile(
    rf"^\.(?:visible |weak )?\.?(?:const|global) .*{_VARIABLE}(\d+) = (?:generic\()?([\w$]+)\)?;\n",
    re.MULTILINE,
)
_ENTRY = re.compile(r"^\s*(?:\.visible|\.weak)?\s*\.entry ([\w$]+)", re.MULTILINE)


def headers(source: str) -> tuple[str, ...]:
    """Those of our headers that `source` includes, sorted, whatever conditionals they are in."""
    known = set(overlay.headers())
    return tuple(sorted({header for header in _INCLUDE.findall(source) if header in known}))


def text(source: str, name: str, macros: Mapping[str, str | int], kernels: Sequence[str]) -> str:
    """The translation unit of `source`; line 1 stays line 1 of `name`, kernel k is line k+1 of
    FILE.

    Headers come before macros, because a macro such as N must not affect them; the source's own
    #include then has no effect.
    """
    for kernel in kernels:
        if not kernel.strip() or re.search(r"[\x00-\x1f;{}\\]|//|/\*", kernel):
            raise ValueError(
                "kernels: expected a kernel's name, with template arguments where it has any, got"
                f" {kernel!r}"
            )
    return "\n".join(
        [
            *(f"#include <{header}>" for header in headers(source)),
            '#line 1 "macros"',
            *(
                f"#define {macro} {int(value) if isinstance(value, bool) else value}"
                for macro, value in macros.items()
            ),
            _DEVICE_BY_DEFAULT,
            f'#line 1 "{name}"',
            source,
            "",
            f'#line 1 "{FILE}"',
            *(
                f'extern "C" __attribute__((device, used)) const void* const {_VARIABLE}{index} ='
                f" (const void*)&({kernel});"
                for index, kernel in enumerate(kernels)
            ),
            "",
        ]
    )


def extracted(ptx: str, kernels: Sequence[str]) -> tuple[dict[str, str], str]:
    """The symbol of each kernel expression, and the PTX without the appended variables."""
    found = {
        kernels[int(match[1])]: match[2]
        for match in _ADDRESS.finditer(ptx)
        if int(match[1]) < len(kernels)
    }
    return found, _ADDRESS.sub("", ptx)


def entries(ptx: str) -> frozenset[str]:
    """The symbols of all kernels in a PTX text."""
    return frozenset(_ENTRY.findall(ptx))
