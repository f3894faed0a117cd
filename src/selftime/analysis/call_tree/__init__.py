"""The call tree, with costs by operator, frame, module and line."""
