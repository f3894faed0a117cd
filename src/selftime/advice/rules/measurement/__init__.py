"""Rules about the measurement itself: chapter L of the catalogue of bottlenecks."""
