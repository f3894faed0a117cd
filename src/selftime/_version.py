"""The version of selftime."""

__version__ = "0.1.0"
