"""CUDA devices: cubins, CUDA graphs, measured times. CuPy is imported here and nowhere else."""
