"""Reads memory snapshots, which PyTorch pickles, without running code in the pickle."""
