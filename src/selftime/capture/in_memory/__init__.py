"""What torch's profiler holds of a recording, as a trace: no file is written, none is read."""
