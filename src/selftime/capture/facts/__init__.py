"""What a trace lacks: the facts of a program, its machine and its settings."""
