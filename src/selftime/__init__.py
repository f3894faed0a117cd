"""Find out where a PyTorch program spends its time, what to change, and what it will save."""

__version__ = "0.1.0"
