"""Runs at the start of a Python process: watches for torch, then runs the user's sitecustomize.

Any version of Python may read this file, so it uses only syntax that all have.
"""

import os
import sys

if __name__ == "sitecustomize":
    _here = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120 - needs no import
    if "SELFTIME_RUN" in os.environ and sys.version_info >= (3, 10):
        import selftime_startup  # type: ignore[import-not-found]  # noqa: F401 - its use

    # Undo the changes to the import path.
    sys.path[:] = [_path for _path in sys.path if _path != _here]
    sys.path_importer_cache.pop(_here, None)
    del sys.modules["sitecustomize"]
    # `site` ignores the ImportError if there is none.
    import sitecustomize  # type: ignore[import-not-found]  # noqa: F401 - the user's own
