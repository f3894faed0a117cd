"""Says whose code the Python frames of a trace are, by the folders of its packages.

Frames name a file by its path from a folder of `sys.path`: `timm/layers/mlp.py` may be of a library
or of a checkout beside the script. Recorded lines have full paths, which tell.
"""

import polars as pl

from selftime import names
from selftime.analysis.per_trace_cache import cached_per_trace
from selftime.trace import Trace


def parse_frame_of_trace(trace: Trace, frame_name: str) -> names.Frame | None:
    """Parses a Python frame's name as `names.parse_frame`, where packages of the user are known."""
    frame = names.parse_frame(frame_name)
    if frame is None or frame.origin != "library":
        return frame
    package = frame.file.partition("/")[0]
    return frame._replace(origin="user") if package in _users_packages(trace) else frame


@cached_per_trace
def _users_packages(trace: Trace) -> frozenset[str]:
    """Returns the packages and files in folders of `sys.path` of which a user's line was recorded.

    Such a folder is neither of installed packages nor of the standard library.
    """
    told = trace.facts.get("paths")
    folders = [path for path in told if isinstance(path, str)] if isinstance(told, list) else []
    found = set()
    for file in trace.lines["file"].drop_nulls().unique().cast(pl.String):
        within = (f"{folder.rstrip('/')}/" for folder in sorted(folders, key=len, reverse=True))
        folder = next((each for each in within if file.startswith(each)), None)
        if folder is not None and names.is_users_file(file):
            found.add(file.removeprefix(folder).partition("/")[0])
    return frozenset(found)
