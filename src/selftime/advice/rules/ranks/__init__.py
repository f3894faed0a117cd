"""Chapter I of the catalogue: several ranks."""
