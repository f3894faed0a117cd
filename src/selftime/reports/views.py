"""Writes the list of the views, with their options and columns, as text or JSON."""

import json
from typing import Any, Final

from selftime.reports.terminal import two_column_text
from selftime.views import VIEWS, View

VIEW_LIST_FORMAT: Final = "selftime.views/1"
"""Name and version of the JSON that `selftime views --format json` prints."""


def as_json() -> str:
    """Returns all views as JSON: documentation, needs, options and columns of each."""
    known = {
        "format": VIEW_LIST_FORMAT,
        "views": [_view_description(VIEWS[name]) for name in sorted(VIEWS)],
    }
    return json.dumps(known, indent=1) + "\n"


def as_text(*, width: int) -> str:
    """Returns the names and titles of all views, one a line."""
    titles = ((name, VIEWS[name].title) for name in sorted(VIEWS))
    return two_column_text(titles, width=width) + "\n"


def _view_description(view: View[Any]) -> dict[str, Any]:
    return {
        "name": view.name,
        "doc": view.doc,
        "needs": list(view.needs),
        "options": [
            {"name": o.name, "default": o.default, "choices": list(o.choices)}
            for o in view.options.values()
        ],
        "columns": [
            {"name": c.name, "unit": c.unit, "doc": c.doc, "nullable": c.nullable}
            for c in view.columns
        ],
    }
