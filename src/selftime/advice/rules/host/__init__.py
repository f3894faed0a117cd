"""Chapter D of the catalogue: the host."""
