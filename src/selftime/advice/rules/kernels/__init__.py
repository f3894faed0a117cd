"""Chapter E of the catalogue: kernels."""
