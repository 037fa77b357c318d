"""The command line: one command a file, on top of everything else."""
