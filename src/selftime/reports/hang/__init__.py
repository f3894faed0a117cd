"""Writes why a job hangs as text or JSON."""

from selftime.reports.hang.hang_json import as_json
from selftime.reports.hang.hang_text import as_text

__all__ = ["as_json", "as_text"]
