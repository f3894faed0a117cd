"""Links slices: kernels to launches, frames to callers, backward operators to forward ones."""
