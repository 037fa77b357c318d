"""Measurements of the engine itself: `python -m benchmarks.verdict` and others."""
