"""Rules about loading input data: chapter A of the catalogue of bottlenecks."""
