"""A search engine for fast GPU kernels."""

__version__ = "0.2.0.dev0"
