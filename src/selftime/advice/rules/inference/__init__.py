"""Chapter K of the catalogue: inference of language models."""
