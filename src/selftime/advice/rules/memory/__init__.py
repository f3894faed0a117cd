"""Chapter G of the catalogue: memory."""
