"""Rules about memory: chapter G of the catalogue of bottlenecks."""
