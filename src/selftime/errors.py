"""Every error that selftime raises on purpose, as one tree.

SelftimeError            a sentence for the user: what was found, where, what to do
├── UsageError           an argument of a command, a query or a call is wrong
├── UnreadableTrace      a path holds nothing that can be read as a trace
├── RecordingError       a recording cannot be started, stopped or written
└── MissingDependency    a required optional package is not installed
"""


class SelftimeError(Exception):
    """One sentence that says what was found, where, and what to do."""


class UsageError(SelftimeError):
    """An argument of a command, a query or a call is wrong."""


class UnreadableTrace(SelftimeError):  # noqa: N818 - reads as what was found, like FileNotFoundError's kin
    """A path holds nothing that can be read as a trace."""


class RecordingError(SelftimeError):
    """A recording cannot be started, stopped or written."""


class MissingDependency(SelftimeError):  # noqa: N818 - names what is missing
    """A required optional package is not installed."""
