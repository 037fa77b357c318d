"""The timing model: a modelled time for a target GPU, from a launch's counts and resources."""
