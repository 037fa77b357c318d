"""Runs lowered kernels: memory, compilation, blocks and warps."""
