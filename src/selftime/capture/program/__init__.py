"""An unmodified program and the processes that belong to it, from start to end."""
