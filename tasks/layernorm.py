"""Layer normalisation over the last dimension: the reference and its baselines.

x and the result are [N, C], weight and bias [C], eps is a float.
"""

import torch
import torch.nn.functional as F


def forward(x, weight, bias, eps):
    """The definition, with the biased variance."""
    mean = x.mean(dim=-1, keepdim=True)
    variance = ((x - mean) ** 2).mean(dim=-1, keepdim=True)
    return (x - mean) / torch.sqrt(variance + eps) * weight + bias


def native(x, weight, bias, eps):
    """torch's own kernel."""
    return F.layer_norm(x, x.shape[-1:], weight, bias, eps)


compiled = torch.compile(forward, dynamic=False)
