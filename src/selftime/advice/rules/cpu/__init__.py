"""Chapter J of the catalogue: programs on the CPU."""
