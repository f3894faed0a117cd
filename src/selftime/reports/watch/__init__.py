"""Writes how far the ranks of a running job have come, as text or JSON."""

from selftime.reports.watch.watch_json import as_json
from selftime.reports.watch.watch_line import as_line
from selftime.reports.watch.watch_text import as_text

__all__ = ["as_json", "as_line", "as_text"]
