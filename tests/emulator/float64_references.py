"""Reference results in float64: attention and matrix products."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


def halves(seed: int, *shape: int, scale: float = 1.0) -> Array:
    """float16 (shape), normal with deviation `scale`."""
    return (np.random.default_rng(seed).standard_normal(shape) * scale).astype(np.float16)


def floats(seed: int, *shape: int, scale: float = 1.0) -> Array:
    """float32 (shape), normal with deviation `scale`."""
    return (np.random.default_rng(seed).standard_normal(shape) * scale).astype(np.float32)


def product(a: Array, b: Array) -> Array:
    """float64 (M, N): a (M, K) times b (K, N)."""
    return np.asarray(a.astype(np.float64) @ b.astype(np.float64))


def softmax(x: Array) -> Array:
    """float64, over the last axis."""
    weights = np.exp(x.astype(np.float64) - x.max(axis=-1, keepdims=True))
    return np.asarray(weights / weights.sum(axis=-1, keepdims=True))


def attention(
    q: Array, k: Array, v: Array, causal: bool = False, window: int | None = None
) -> Array:
    """float64 (H, S, D) of q (H, S, D) and k, v (G, S, D), G a divisor of H; scale 1/sqrt(D); a row
    sees its last `window` keys.
    """
    k, v = (np.repeat(x.astype(np.float64), len(q) // len(x), axis=0) for x in (k, v))
    scores = q.astype(np.float64) @ k.swapaxes(1, 2) / np.sqrt(q.shape[-1])
    row, key = np.arange(q.shape[1])[:, None], np.arange(k.shape[1])[None, :]
    hidden = (causal & (key > row)) | (False if window is None else key <= row - window)
    return np.asarray(softmax(np.where(hidden, -np.inf, scores)) @ v)
