"""Refuses kernels that reach the memory of their parameters in another way than by name.

Parameters lie in memory of the driver, beside those of other launches: an address of one, or a
read beyond it, leads to calls that are still to come. The PTX holds all that the assembler gets,
inline assembly as the candidate wrote it. Comments and strings count as code here, so no text can
hide behind them: every mention of a parameter must be a statement as the compiler writes it, at the
beginning of a line.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from evoengine.evaluate.compile.parameter_mentions import ParameterMentions, mentions_of

_MAX_SHOWN = 120  # characters of a line


def parameter_problem(ptx: str, kernels: Mapping[str, str]) -> str:
    """Why `ptx` may not run, in one line; empty if it reads parameters by name only.

    `kernels`: the names for messages, by the kernels' names in the PTX.
    """
    mentions = mentions_of(ptx)
    return next(_problems(mentions, kernels), "")


def _problems(mentions: ParameterMentions, kernels: Mapping[str, str]) -> Iterator[str]:
    """What is wrong, the clearest first."""
    kernel_parameters = mentions.kernel_parameters
    for name in sorted(kernel_parameters.keys() & mentions.others):
        yield (
            f"{_place(mentions, name, kernels, 'takes the address of')}, which is memory of the"
            " driver; read parameters by name"
        )
    for access in mentions.accesses:
        if access.end > mentions.sizes.get(access.name, access.end):
            yield (
                f"{_place(mentions, access.name, kernels, 'reads beyond')}, into memory of the"
                " driver; read parameters by name"
            )
        if access.name not in mentions.sizes:
            yield f"inline PTX uses {access.name!r} as a parameter, which it is not"
    for line in mentions.unknown:
        yield (
            "inline PTX uses the memory of parameters, which belongs to the driver; read parameters"
            f" by name: {' '.join(line.split())[:_MAX_SHOWN]}"
        )
    for name in sorted(mentions.sizes.keys() & mentions.others):
        yield f"inline PTX or a variable takes the compiler's name {name!r}; choose another one"
    for name in sorted(mentions.sizes):
        if numbered := next((item for item in _prefixes(name) if item in mentions.prefixes), ""):
            yield f"inline PTX numbers registers from {numbered!r}, which can give {name!r}"


def _prefixes(name: str) -> Iterator[str]:
    """What `name` can be the numbered register of."""
    letters = len(name.rstrip("0123456789"))
    return (name[:end] for end in range(letters, len(name)))


def _place(mentions: ParameterMentions, name: str, kernels: Mapping[str, str], verb: str) -> str:
    """Which kernel does something to which of its parameters, counted from 1."""
    kernel, number = mentions.kernel_parameters.get(name, ("", 0))
    if not kernel:
        return f"a device function {verb} its parameter {name!r}"
    return f"kernel {kernels.get(kernel, kernel)} {verb} its parameter {number}"
