"""Measurements of the engine itself: `python -m benchmarks.verdict`, `python -m benchmarks.loop`."""
