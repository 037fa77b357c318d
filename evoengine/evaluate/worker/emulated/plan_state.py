"""What the launches of a plan change: the buffers that a candidate writes, and the variables of its
code.
"""

from __future__ import annotations

from collections.abc import Sequence

from evoengine.evaluate.worker.emulated.emulated_arena import EmulatedArena
from evoengine.evaluate.worker.emulated.emulated_program import EmulatedProgram


class PlanState:
    """All of it as it was when this was made.

    Whoever runs some blocks of a launch, and then others or all of them, restores it between: on a
    GPU every launch runs once, and a kernel may count, draw turns or change data in place.
    """

    def __init__(
        self, program: EmulatedProgram, arena: EmulatedArena, written: Sequence[str]
    ) -> None:
        """`written` names buffers: all that are no inputs, for a launch may know the address of one
        that it is not given.
        """
        self._program = program
        self._arena = arena
        self._buffers = {name: arena.tensors[name].clone() for name in written}
        self._variables = program.variables

    def restore(self) -> None:
        """Puts everything back."""
        self._arena.fill(self._buffers)
        self._program.variables = self._variables
