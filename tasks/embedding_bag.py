"""Sums of embedding rows by bag: the reference and its baselines.

table is [V, D], indices [T] with values below V, offsets [BAGS + 1] from 0 to T, ascending; bag b sums the
rows of indices[offsets[b]:offsets[b + 1]] and may be empty. The result is [BAGS, D].
"""

import torch
import torch.nn.functional as F


def forward(table, indices, offsets):
    """The definition: every index adds its row to the sum of its bag."""
    return added(table, indices, offsets)


def added(table, indices, offsets):
    """By one addition an index, in any order."""
    places = torch.arange(len(indices), device=table.device)
    bags = torch.searchsorted(offsets.long(), places, right=True) - 1
    sums = torch.zeros(len(offsets) - 1, table.shape[1], dtype=table.dtype, device=table.device)
    return sums.index_add_(0, bags, table[indices.long()])


def native(table, indices, offsets):
    """torch's own kernel."""
    return F.embedding_bag(indices, table, offsets, mode="sum", include_last_offset=True)
