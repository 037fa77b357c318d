"""CUDA devices: cubins, CUDA graphs, measured times. Only this folder imports CuPy."""
