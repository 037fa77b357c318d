"""The search: what a run is begun with, how it goes on, and what is read back from it."""
