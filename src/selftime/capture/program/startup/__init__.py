"""Contains modules that Python imports at the start of each process of a recorded program.

It is not imported as a package of selftime: `PYTHONPATH` names it, and its modules are top-level
modules (see `sitecustomize`). Any Python that the program starts reads them, so they must not fail
anywhere.
"""
