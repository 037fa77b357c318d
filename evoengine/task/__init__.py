"""A task: what to speed up, on which shapes, and what counts as correct."""
