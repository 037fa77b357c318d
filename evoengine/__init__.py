"""A search engine for fast GPU kernels."""

__version__ = "0.1.0"
