"""Every error that selftime raises on purpose, as one tree.

SelftimeError            a sentence for the user: what, where, what to do
├── UsageError           the words of a command, a query or a call are wrong
├── UnreadableTrace      a path holds nothing that can be read as a trace
├── RecordingError       a recording cannot be started, stopped or written
└── MissingDependency    an optional package is needed and is not installed
"""


class SelftimeError(Exception):
    """One sentence that says what was found, where, and what to do."""


class UsageError(SelftimeError):
    """The words of a command, a query or a call are wrong."""


class UnreadableTrace(SelftimeError):  # noqa: N818 - reads as what was found, like FileNotFoundError's kin
    """A path holds nothing that can be read as a trace."""


class RecordingError(SelftimeError):
    """A recording cannot be started, stopped or written."""


class MissingDependency(SelftimeError):  # noqa: N818 - names what is missing
    """An optional package is needed and is not installed."""
