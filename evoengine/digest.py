"""Digests: the same content has the same digest on every machine."""

import hashlib
import json
from typing import Any

LENGTH = 32  # hexadecimal digits kept: 128 bits, no accidental collision in any run


def digest(*parts: str | bytes) -> str:
    """The hexadecimal digest of `parts`; it depends on the boundaries between parts."""
    state = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        state.update(len(data).to_bytes(8, "little"))
        state.update(data)
    return state.hexdigest()[:LENGTH]


def digest_json(value: Any) -> str:
    """The digest of a JSON value; it does not depend on the order of keys."""
    return digest(json.dumps(value, sort_keys=True, separators=(",", ":")))


def derived_seed(*parts: object) -> int:
    """A 32-bit seed that depends only on `parts`."""
    return int(digest(*(str(part) for part in parts))[:8], 16)
