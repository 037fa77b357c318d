"""The process that owns a GPU: torch and CuPy live here and nowhere else."""
