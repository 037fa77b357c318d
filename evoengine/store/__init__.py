"""Keeps a run: a SQLite file in its folder, or the memory of a test."""
