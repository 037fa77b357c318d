"""Proposes candidates: by a model, by a search over tunables, or as an earlier run did."""
