"""Running what was lowered: memory, compilation, blocks and warps."""
