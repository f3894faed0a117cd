"""Computes the data of views and rules from a trace: costs of slices, steps, idle time, memory.

Views do not import each other. What two of them need is computed here once, so that a number is the
same wherever it is shown. Each subject has a folder, such as `call_tree` (nesting and costs of
slices), `steps`, `device`, `idle`, `memory`, `models` (operations and bytes of operators),
`timeline` and `health` (whether a recording can be trusted). What all of them use is beside them.
"""
