"""The pipeline of per-source-eval."""

__version__ = "0.1.0"
