"""Keeps the best: a fold over settled trials."""
