"""Names for content: the same bytes have the same digest, everywhere."""

import hashlib
import json
from typing import Any

LENGTH = 32  # hexadecimal digits kept: 128 bits, no accidental collision in any run


def digest(*parts: str | bytes) -> str:
    """A hexadecimal name for `parts`; where one part ends and the next begins counts."""
    state = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        state.update(len(data).to_bytes(8, "little"))
        state.update(data)
    return state.hexdigest()[:LENGTH]


def digest_json(value: Any) -> str:
    """A name for a JSON value; the order of keys does not count."""
    return digest(json.dumps(value, sort_keys=True, separators=(",", ":")))


def derived_seed(*parts: object) -> int:
    """A 32-bit seed that depends on all of `parts` and on nothing else."""
    return int(digest(*(str(part) for part in parts))[:8], 16)
