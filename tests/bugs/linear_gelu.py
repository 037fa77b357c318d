"""A linear layer with bias, the exact GELU and a residual: the reference and its baseline.

x is [M, K], weight [N, K], bias [N], residual and the result are [M, N].
"""

from torch.nn.functional import gelu


def forward(x, weight, bias, residual):
    """The definition, in the precision of its inputs."""
    return gelu(x @ weight.T + bias) + residual


def half(x, weight, bias, residual):
    """Single precision within, rounded once."""
    return forward(x.float(), weight.float(), bias.float(), residual.float()).half()
