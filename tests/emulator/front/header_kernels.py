"""Generates a kernel for every function of our headers, from the preprocessed headers."""

from __future__ import annotations

import re
from dataclasses import dataclass

from evoengine.emulator.front import clang

_FUNCTION = re.compile(
    r"static\s+__inline__\s+(?:constexpr\s+)?__attribute__\(\(([^()]*)\)\)\s+"
    r"((?:(?:unsigned|signed|long|const)\s+)*[A-Za-z_]\w*[\s*&]+)(operator\s*[^\s\w(]+|\w+)\(([^()]*)\)\s*\{"
)

# types that are written without their namespace in it
_GROUP = re.compile(r"\b(thread_block|thread_group|grid_group|coalesced_group)\b")


@dataclass(frozen=True)
class Function:
    """A function of the headers as it is declared: namespace, result, name, types of its
    parameters.
    """

    scope: str
    result: str
    name: str
    parameters: tuple[str, ...]


def preprocessed(arch: str, headers: tuple[str, ...]) -> str:
    """What clang sees of these headers."""
    return clang.preprocessed(arch, headers)


def functions(text: str) -> list[Function]:
    """Every non-template function outside classes, with the namespace it stands in."""
    scopes = _Scopes(text)
    found = []
    for match in _FUNCTION.finditer(text):
        template = re.search(
            r"template\s*<[^{};]*>\s*\Z", text[max(0, match.start() - 300) : match.start()]
        )
        if "device" in match[1] and not template:
            parts = [part.partition("=")[0].strip() for part in match[4].split(",") if part.strip()]
            found.append(
                Function(
                    scopes.at(match.start()),
                    match[2].strip(),
                    match[3].replace(" ", ""),
                    tuple(map(_type, parts)),
                )
            )
    return found


def _type(parameter: str) -> str:
    """The type in "unsigned int x"; the name of a type is not a parameter name."""
    words = re.match(r"(.*[\s*&])(\w+)\Z", parameter)
    return (
        words[1].strip()
        if words and words[2] not in ("int", "long", "char", "short", "double", "float")
        else parameter
    )


class _Scopes:
    """The namespaces that are open at growing positions of a text."""

    def __init__(self, text: str) -> None:
        self._tokens = re.finditer(r"(?:namespace\s+(\w+)\s*)?\{|\}|\"(?:\\.|[^\"\\])*\"|\Z", text)
        self._next = next(self._tokens)
        self._open: list[str] = []

    def at(self, position: int) -> str:
        while self._next.start() < position:
            if self._next[0].endswith("{"):
                self._open.append(self._next[1] or "")
            elif self._next[0] == "}":
                self._open.pop()
            self._next = next(self._tokens)
        return "".join(f"{name}::" for name in self._open if name)


def calls(found: list[Function]) -> str:
    """A kernel for each of `found` that calls it with the kernel's parameters and stores what it
    returns.
    """
    return "\n".join(_kernel(index, function) for index, function in enumerate(found))


def _kernel(index: int, function: Function) -> str:
    declared, arguments = [], []
    for place, kind in enumerate(function.parameters):
        reference = kind.endswith("&")
        kind = _GROUP.sub(rf"{function.scope}\1", kind)
        kind = (
            re.sub(r"^const (.*)&$", r"\1", kind).removesuffix("&").strip() if reference else kind
        )
        declared.append(f"{kind}* p{place}" if reference else f"{kind} p{place}")
        arguments.append(f"*p{place}" if reference else f"p{place}")
    call = f"{function.scope}{function.name}({', '.join(arguments)})"
    if (
        function.name.startswith("operator")
        and function.name[8:] in ("++", "--")
        and len(arguments) == 2
    ):
        call = f"({arguments[0]}){function.name[8:]}"
    result = _GROUP.sub(rf"{function.scope}\1", function.result.removesuffix("&").strip())
    stored = f"{call};" if result == "void" else f"*({result}*)out = {call};"
    return f"__global__ void k{index}({', '.join(['void* out', *declared])}) {{ {stored} }}"
