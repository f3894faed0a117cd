"""Steps: where they begin and end, which are typical, and how their time divides by category."""
