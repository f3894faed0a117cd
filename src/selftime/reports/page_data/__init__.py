"""What the page in a browser asks for: rows of views, the advice, comparisons, source lines."""
