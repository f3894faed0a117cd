"""Says why Python frames cannot be recorded now without harm to the program."""

import sys

from selftime.capture.trace_file.non_utf8_files import escape_non_utf8, first_non_utf8_file


def reason_to_skip_frames() -> str | None:
    """Returns a sentence that says why Python frames are not recorded; None if they can be.

    PyTorch's recorder fails on file names that are not UTF-8. It takes the place of a profile
    function, such as that of `cProfile`, and removes it when it ends: the program's own profile
    would lack all calls from then on.
    """
    if (file := first_non_utf8_file()) is not None:
        return (
            "Python frames and source lines are not recorded: the name of "
            f"`{escape_non_utf8(file)}` is not UTF-8, and PyTorch's recorder fails on it; rename it"
        )
    if sys.getprofile() is not None:
        return (
            "Python frames and source lines are not recorded: the program has a profile function "
            "of its own (`sys.setprofile` or `cProfile`), which PyTorch's recorder would remove; "
            "run the program without it"
        )
    return None
