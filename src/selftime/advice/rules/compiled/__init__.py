"""Rules about compiled programs: chapter H of the catalogue of bottlenecks."""
