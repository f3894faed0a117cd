"""Events of the text as columns: decoded, typed, and joined for the whole file."""
