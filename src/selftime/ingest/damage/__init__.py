"""What is wrong with a file: found, mended where that is sure, and counted."""
