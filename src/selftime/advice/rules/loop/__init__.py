"""Chapter F of the catalogue: the loop."""
