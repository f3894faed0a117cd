"""Rules about kernels on the device: chapter E of the catalogue of bottlenecks."""
