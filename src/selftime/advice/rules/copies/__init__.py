"""Rules about copies and conversions of tensors: chapter C of the catalogue of bottlenecks."""
