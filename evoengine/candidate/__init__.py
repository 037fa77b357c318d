"""A candidate: one kernel file with its launch plan, and that plan bound to a case."""
