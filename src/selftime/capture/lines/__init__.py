"""Which line of the user's code an operator belongs to."""
