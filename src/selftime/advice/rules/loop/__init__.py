"""Rules about training and evaluation loops: chapter F of the catalogue of bottlenecks."""
