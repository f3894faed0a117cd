"""Rules about the whole run, outside of steady steps: chapter M of the catalogue of bottlenecks."""
