"""What belongs together: launches, callers, gradients, lines."""
