"""Runs as a new Python process starts: watches for torch, then makes way for the user's own.

Any version of Python may read this file, so it is written for all of them.
"""

import os
import sys

if __name__ == "sitecustomize":
    _here = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120 - costs no import
    if "SELFTIME_RUN" in os.environ and sys.version_info >= (3, 10):
        import selftime_startup  # type: ignore[import-not-found]  # noqa: F401 - its use

    # From here on the process finds what it would have found without us.
    sys.path[:] = [_path for _path in sys.path if _path != _here]
    sys.path_importer_cache.pop(_here, None)
    del sys.modules["sitecustomize"]
    # That there is none is no error to `site`.
    import sitecustomize  # type: ignore[import-not-found]  # noqa: F401 - the user's own
