"""From evidence to the line of the user's code, by what was recorded or by reading the source."""
