"""Chapter L of the catalogue: measurement and verdicts."""
