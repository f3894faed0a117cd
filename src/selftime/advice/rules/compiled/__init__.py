"""Chapter H of the catalogue: compiled programs."""
