"""Whether an expression has a meaning at another place, be it of other variables of its names."""

from __future__ import annotations

from evoengine.evaluate.repair.kernel_code import KernelCode


def has_meaning(code: KernelCode, pair: tuple[int, int], position: int) -> bool:
    """Whether variables with all names of the tokens `pair` can be used at `position`: a loop's
    variable often has the same name in the next loop.
    """
    tokens = code.tokens
    names = {
        tokens.text(at)
        for at in range(pair[0], pair[1] + 1)
        if tokens.kind(at) == "name" and code.names.at(at) is not None
    }
    return names <= {item.name for item in code.names.visible(position)}
