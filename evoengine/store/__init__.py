"""Stores runs: in a SQLite file in the run's folder, or in memory for tests."""
