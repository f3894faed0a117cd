"""Snapshots of the allocator: pickles that run nothing."""
