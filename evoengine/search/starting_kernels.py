"""The starting kernels of a stored run."""

from __future__ import annotations

import itertools

from evoengine.config import RunConfig
from evoengine.protocols import ProposalRow, Store
from evoengine.records import Proposal

SEED = "seed"  # the operator of a starting kernel's proposal


def starting_kernels(store: Store, config: RunConfig) -> list[Proposal]:
    """The proposals of its first trials.

    A budget of few trials may hold fewer of them than its settings name.
    """
    rows = (store.get(ProposalRow, trial) for trial in range(len(config.kernels)))
    found = itertools.takewhile(lambda row: row is not None and row.proposal.operator == SEED, rows)
    return [row.proposal for row in found if row]
