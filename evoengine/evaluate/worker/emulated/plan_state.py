"""The state that launches change: the buffers that a candidate writes, and its global variables."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from evoengine.digest import digest
from evoengine.evaluate.worker.emulated.emulated_arena import EmulatedArena
from evoengine.evaluate.worker.emulated.emulated_program import EmulatedProgram


class PlanState:
    """A copy of the state at construction.

    It must be restored before more blocks of the same launch are run: on a GPU every launch runs
    once, and a kernel may count, take tickets or change data in place.
    """

    def __init__(
        self, program: EmulatedProgram, arena: EmulatedArena, written: Sequence[str]
    ) -> None:
        """`written` names all buffers that are not inputs: a launch may have stored the address of
        one that it is not given.
        """
        self._program = program
        self._arena = arena
        self._buffers = {name: arena.tensors[name].clone() for name in written}
        self._variables = program.variables

    def digest_now(self) -> str:
        """The digest of what these buffers and variables hold now."""
        buffers = (self._arena.tensors[name].view(-1).view(torch.uint8) for name in self._buffers)
        return digest(self._program.variables, *(value.numpy().tobytes() for value in buffers))

    def restore(self) -> None:
        """Restores all buffers and variables."""
        self._arena.fill(self._buffers)
        self._program.variables = self._variables
