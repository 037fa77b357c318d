"""What a prompt shows of a task's Python file."""

from __future__ import annotations

import ast

import pytest

from evoengine import paths
from evoengine.generate import reference_source
from evoengine.generate.reference_source import (
    ALL_OPERATIONS,
    EXPONENTIALS,
    PRODUCTS,
    REDUCTIONS,
)
from evoengine.task.load import load_task

FILE = '''\
"""What it is."""

import os
import torch

# How many rows at a time.
ROWS = 256
OTHER = 3


def forward(x):
    """The definition."""
    return _rows(x, ROWS)


@torch.no_grad()
def _rows(x, rows):
    return x.sum(-1)


def baseline(x):
    return forward(x) + OTHER
'''


def test_an_excerpt_has_all_that_a_function_needs_and_nothing_else() -> None:
    text = reference_source.excerpt(FILE, "forward")
    assert text.startswith('"""What it is."""\n')
    for word in ("import torch", "# How many rows at a time.\nROWS = 256", "@torch.no_grad()"):
        assert word in text
    for word in ("import os", "OTHER", "baseline"):
        assert word not in text
    ast.parse(text)


def test_an_excerpt_leaves_out_what_is_shown_elsewhere() -> None:
    shown = reference_source.names_defined(FILE, "forward")
    text = reference_source.excerpt(FILE, "baseline", shown)
    assert text == "OTHER = 3\n\ndef baseline(x):\n    return forward(x) + OTHER"


@pytest.mark.parametrize("text", ["def f(:", "x = 1\n"])
def test_a_file_that_cannot_be_cut_is_shown_whole_and_counts_as_everything(text: str) -> None:
    assert reference_source.excerpt(text, "forward") == text
    assert reference_source.operations_of(text, "forward") == ALL_OPERATIONS


@pytest.mark.parametrize(
    ("task", "operations"),
    [
        ("sdpa_h200", {PRODUCTS, REDUCTIONS, EXPONENTIALS}),
        ("matmul_fp16", {PRODUCTS}),
        ("layernorm", {REDUCTIONS}),
        ("embedding_bag", {REDUCTIONS}),
        ("adamw", set()),
    ],
)
def test_the_operations_of_packaged_tasks(task: str, operations: set[str]) -> None:
    path = paths.find_task(task)
    file, _, name = load_task(path).reference.rpartition(":")
    text = (path.parent / file).read_text()
    assert reference_source.operations_of(text, name) == operations
    ast.parse(reference_source.excerpt(text, name))
