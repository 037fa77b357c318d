"""Root mean square normalisation over the last dimension: the reference and its baselines.

x and the result are [N, C], weight is [C], eps is a float.
"""

import torch
import torch.nn.functional as F


def forward(x, weight, eps):
    """The definition; it is called with float64 tensors and returns the correct outputs."""
    return x / torch.sqrt((x * x).mean(dim=-1, keepdim=True) + eps) * weight


def native(x, weight, eps):
    """torch's own, in the precision of the inputs: the trusted implementation and a baseline."""
    return F.rms_norm(x, x.shape[-1:], weight, eps)


compiled = torch.compile(forward, dynamic=False)
