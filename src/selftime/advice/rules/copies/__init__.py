"""Chapter C of the catalogue: copies and conversions."""
