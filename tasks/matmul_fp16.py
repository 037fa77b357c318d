"""Matrix product in half precision: the reference and its baselines.

a is [M, K], b is [K, N], the result [M, N], all row-major.
"""

import torch


def forward(a, b):
    """The product in the precision of its inputs."""
    return a @ b


compiled = torch.compile(forward, dynamic=False, mode="max-autotune-no-cudagraphs")
