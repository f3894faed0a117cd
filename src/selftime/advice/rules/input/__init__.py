"""Chapter A of the catalogue: input."""
