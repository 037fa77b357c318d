"""The names that arrays in shared memory have in the source."""

from __future__ import annotations

import re
from collections.abc import Mapping

# what ends the name of a variable inside of a function, as the Itanium ABI mangles it: its length
# and itself, perhaps with a number where several have one name
_LAST_NAME = re.compile(r"E(\d+)([A-Za-z_]\w*)$")
_AGAIN = re.compile(r"(_\d+|__\d+_)?")


def shared_array(offset: int, offsets: Mapping[str, int]) -> str:
    """The array at `offset` of the shared window, by the offsets of all; "" where none is."""
    before = [(place, name) for name, place in offsets.items() if place <= offset]
    return source_name(max(before)[1]) if before else ""


def source_name(mangled: str) -> str:
    """`keys` for `_ZZ1kILi64EEvPfE4keys`; a name that is not mangled is its own."""
    if not mangled.startswith("_Z"):
        return mangled
    found = _LAST_NAME.search(mangled)
    if found is None:
        return ""
    length, rest = int(found[1]), found[2]
    is_whole = length <= len(rest) and _AGAIN.fullmatch(rest[length:])
    return rest[:length] if is_whole else ""
