"""Rules about inference of language models: chapter K of the catalogue of bottlenecks."""
