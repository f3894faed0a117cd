"""Records a few steps of a program into a trace file, once step durations are steady."""
