"""Searches for the one change of a wrong kernel's source that makes every output right."""
