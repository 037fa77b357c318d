"""An index out of range is an IndexError before any kernel sees it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

import pytest
import torch
from torch.nn import functional

from evoengine.evaluate.worker.forensics.checked_indices import CheckedIndices
from tests.evaluate.worker.forensics.mistakes import of_some

TABLE = torch.arange(12.0).view(4, 3)
Read = Callable[[torch.Tensor], torch.Tensor]
# what reads 4 rows, and whether -1 is one of them
READS: dict[str, tuple[Read, bool]] = {
    "index": (lambda at: TABLE[at], True),
    "index after a mask": (lambda at: TABLE.T[torch.tensor([True, False, True]), at[:2]], True),
    "index of the second axis": (lambda at: TABLE.T[:, at], True),
    "index_put": (lambda at: TABLE.clone().index_put_((at,), torch.zeros(3)), True),
    "gather": (lambda at: TABLE.gather(0, at.view(-1, 1)), False),
    "index_select": (lambda at: TABLE.index_select(0, at), False),
    "index_add": (lambda at: TABLE.index_add(0, at, TABLE[: len(at)]), False),
    "scatter": (lambda at: TABLE.scatter(0, at.view(-1, 1), 7.0), False),
    "scatter_add": (lambda at: TABLE.scatter_add(0, at.view(-1, 1), TABLE), False),
    "take": (lambda at: TABLE[:, 0].contiguous().take(at), True),
    "embedding": (lambda at: functional.embedding(at, TABLE), False),
    "embedding_bag": (lambda at: functional.embedding_bag(at, TABLE, torch.tensor([0, 1])), False),
    "cross_entropy": (
        lambda at: functional.cross_entropy(TABLE.T.repeat(2, 1)[: len(at)], at),
        False,
    ),
}


@of_some
@pytest.mark.parametrize("name", READS)
def test_an_index_out_of_range_is_refused_and_one_in_range_is_not(name: str) -> None:
    read, wraps = READS[name]
    right = torch.tensor([0, 3, 1])
    with CheckedIndices():
        found = read(right)
        for wrong in [4, -5] + ([] if wraps else [-1]):
            with pytest.raises(IndexError):
                read(torch.tensor([0, wrong, 1]))
    assert torch.equal(found, read(right))


def test_offsets_of_bags_stay_within_the_indices() -> None:
    at = torch.tensor([0, 3, 1])
    with CheckedIndices(), pytest.raises(IndexError):
        functional.embedding_bag(at, TABLE, torch.tensor([0, 4]))


def test_ignored_classes_are_no_indices() -> None:
    target = torch.tensor([0, -100, 1])
    scores = TABLE[:3]
    with CheckedIndices():
        found = functional.cross_entropy(scores, target)
    assert torch.equal(found, functional.cross_entropy(scores, target))


def test_gradients_are_computed_as_without() -> None:
    table = TABLE.clone().requires_grad_()
    with CheckedIndices():
        functional.embedding(torch.tensor([1, 1, 2]), table).sum().backward()
    assert table.grad is not None
    assert table.grad[:, 0].tolist() == [0, 2, 1, 0]


def test_torchs_compiler_is_not_imported_for_it() -> None:
    """It takes seconds, in which a grader does nothing else."""
    code = (
        "import sys, torch\n"
        "from evoengine.evaluate.worker.forensics.checked_indices import CheckedIndices\n"
        "with CheckedIndices():\n"
        "    torch.ones(3)[torch.tensor([2])]\n"
        "    try:\n"
        "        torch.ones(3)[torch.tensor([3])]\n"
        "    except IndexError as error:\n"
        "        print(error)\n"
        "print('torch._dynamo' in sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "an index is not within -3 and 2\nFalse\n"
