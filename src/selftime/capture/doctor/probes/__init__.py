"""What the child tries out, one stage a file: `answer()` does it and tells what came of it."""
