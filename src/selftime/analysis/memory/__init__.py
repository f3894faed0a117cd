"""Memory: blocks, who holds them, and what grows."""
