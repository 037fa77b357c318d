"""CUDA devices: cubins, CUDA graphs, measured times."""
