"""What the names of a kernel say of themselves, in words."""

from __future__ import annotations

import re

# parts of names as kernels use them -> what they stand for
_ROLES = (
    (r"top|high|highest|max|maximum|largest|peak|m_i|row_m", "maximum"),
    (r"sum|sums|total|totals|acc|accumulator|row_l|l_i|squares|partial", "sum"),
    (r"denominator|denom|norm", "denominator"),
    (r"shrink|rescale|correction|alpha|decay", "rescaling"),
    (r"scale|scales|factor|steps", "scale"),
    (r"mean|mu|average|offset|shift", "mean"),
    (r"variance|var|deviation|std|inverse|rstd", "variance"),
    (r"weight|weights|prob|probs|p|w|gamma", "weights"),
    (r"bias", "bias"),
    (r"seen|visible|masked|mask|causal|inside|valid|hidden", "mask"),
    (r"key|keys|k|kv|ks", "keys"),
    (r"query|queries|q|qs", "queries"),
    (r"value|values|v|vs", "values"),
    (r"score|scores|logit|logits|s", "scores"),
    (r"head|heads", "heads"),
    (r"row|rows", "rows"),
    (r"column|columns|col|cols|channel|channels", "columns"),
    (r"lane|lanes", "lanes"),
    (r"warp|warps", "warps"),
    (r"expert|experts", "experts"),
    (r"gate|gates", "gates"),
    (r"group|groups", "groups"),
    (r"batch", "batches"),
    (r"position|positions|place|token|tokens", "positions"),
    (r"tile|tiles|chunk|chunks|split|splits|slice|slices", "tiles"),
    (r"residual", "residual"),
    (r"sink|sinks", "sinks"),
    (r"out|output|dst", "output"),
    (r"quant|code|codes|quantised", "codes"),
    (r"moment|momentum", "moment"),
    (r"carry|prefix|before", "carry"),
)
_PATTERNS = tuple((re.compile(pattern), role) for pattern, role in _ROLES)


def role_of(name: str) -> str:
    """What a name stands for; empty where it does not say."""
    parts = [part.rstrip("0123456789") for part in re.split(r"_|(?<=[a-z])(?=[A-Z])", name)]
    for part in reversed(parts):
        for pattern, role in _PATTERNS:
            if pattern.fullmatch(part.lower()):
                return role
    return ""


def roles_of(names: list[str]) -> list[str]:
    """The roles of several names, each once, in their order."""
    return list(dict.fromkeys(role for name in names if (role := role_of(name))))
