"""Proposes candidates: asks a model, tunes what is declared, or replays an earlier run."""
