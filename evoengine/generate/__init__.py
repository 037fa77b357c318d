"""Proposes candidates: asks a model, searches the tunables of kernels, or replays an earlier run."""
