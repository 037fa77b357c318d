"""Keeps the elites of a run: a fold over its settled trials."""
