"""Verdicts drawn by rule, to try a generator without compiler and device."""
