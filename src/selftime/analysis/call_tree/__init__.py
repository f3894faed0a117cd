"""The tree of what ran within what: its costs, by operator, frame, module and line."""
