"""A candidate: a kernel file with its launch plan, and that plan bound to a case."""
