"""Rules about programs on the CPU: chapter J of the catalogue of bottlenecks."""
