"""Matrix product in half precision: the reference and its baselines.

a is [M, K], b is [K, N], the result [M, N], all row-major.
"""

import torch


def forward(a, b):
    """The product in the precision of its inputs."""
    return a @ b


def half(a, b):
    """How far from float64 a trusted product in half precision is: summed in single precision, rounded once.

    A GPU's library does that; on a CPU torch has no fast product of halves, so the same is spelled out.
    """
    return a @ b if a.is_cuda else (a.float() @ b.float()).half()


compiled = torch.compile(forward, dynamic=False, mode="max-autotune-no-cudagraphs")
