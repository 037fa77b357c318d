"""Modelled time: what counts and resources say about a target that is not there."""
