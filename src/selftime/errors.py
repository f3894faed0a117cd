"""Every error that selftime raises on purpose, in one class hierarchy.

SelftimeError            a sentence for the user: what was found, where, what to do
├── UsageError           an argument of a command, a query or a call is wrong
│   └── UnrelatedTraces  a folder holds traces of several jobs, and one was meant
├── UnreadableTrace      a path holds nothing that can be read as a trace
├── RecordingError       a recording cannot be started, stopped or written
├── MissingDependency    a required optional package is not installed
└── ReadingStopped       nobody waits for a trace that was being read
"""


class SelftimeError(Exception):
    """Base class of all errors; the message says in one sentence what is wrong and what to do."""


class UsageError(SelftimeError):
    """Raised for a wrong argument of a command, a query or a call."""


class UnrelatedTraces(UsageError):  # noqa: N818 - reads as what was found, as the next
    """Raised for a folder whose traces are of several jobs, where they would be read as one."""


class UnreadableTrace(SelftimeError):  # noqa: N818 - reads as what was found, like FileNotFoundError's kin
    """Raised for a path if no file there can be read as a trace."""


class RecordingError(SelftimeError):
    """Raised if a recording cannot be started, stopped or written."""


class MissingDependency(SelftimeError):  # noqa: N818 - names what is missing
    """Raised if an optional package that a function needs is not installed."""


class ReadingStopped(SelftimeError):  # noqa: N818 - names what happened
    """Raised while a trace is read, to end that, once nobody waits for it any more."""
