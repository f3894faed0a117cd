"""Events of the text as columns: decoded, typed, and merged for the whole file."""
