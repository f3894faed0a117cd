"""Rules about jobs of several ranks: chapter I of the catalogue of bottlenecks."""
