"""Reading snapshots of PyTorch's CUDA allocator from pickles, without running their code."""
