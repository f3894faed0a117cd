"""Rules about the host (Python and dispatch): chapter D of the catalogue of bottlenecks."""
