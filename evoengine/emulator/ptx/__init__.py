"""Parses PTX text and inlines device functions."""
