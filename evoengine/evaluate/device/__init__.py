"""The parent's side of a device: it starts, times and kills the worker processes."""
