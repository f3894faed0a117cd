"""Contains the checks of `selftime doctor`: each examines one condition for recording."""
