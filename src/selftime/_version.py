"""Contains the version number of selftime."""

__version__ = "0.1.0"
