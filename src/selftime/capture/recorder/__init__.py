"""Records a few steady steps of a program, and writes them beside it."""
