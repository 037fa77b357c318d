"""The version of Triton, which torch.compile makes kernels with."""

from __future__ import annotations

import importlib.util
from importlib import metadata

_DISTRIBUTIONS = ("triton", "pytorch-triton")  # as PyPI and torch's own index call it


def triton_version() -> str | None:
    """The version that can be imported, found without importing it; None where there is none."""
    if importlib.util.find_spec("triton") is None:
        return None
    for name in _DISTRIBUTIONS:
        try:
            return metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return "unknown"  # built from source
