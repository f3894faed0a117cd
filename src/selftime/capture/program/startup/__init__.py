"""The folder that a recorded program's processes find first on their path; see `sitecustomize`.

Nothing imports it as a part of selftime: it is named by `PYTHONPATH`, and its modules are found by
their own names. They are read by whatever Python the program starts, so they may not fail anywhere.
"""
