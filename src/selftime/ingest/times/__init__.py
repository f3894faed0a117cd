"""Times as integer nanoseconds on one clock, whatever the file writes."""
