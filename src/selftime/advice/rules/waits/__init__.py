"""Chapter B of the catalogue: waits for the device."""
