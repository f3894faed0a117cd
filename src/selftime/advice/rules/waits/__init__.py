"""Rules about waits for the device: chapter B of the catalogue of bottlenecks."""
