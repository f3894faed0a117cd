"""What a view is called, takes and answers, as the page needs it to draw any of them."""

from typing import Any, get_args

from selftime.views import Option, View


def described(view: View[Any]) -> dict[str, Any]:
    """`ViewSpec` of the page's contract."""
    return {
        "name": view.name,
        "title": view.title,
        "doc": view.doc,
        "needs": list(view.needs),
        "across": view.across,
        "options": [
            {
                "name": o.name,
                "type": _kind(o),
                "default": o.default,
                "choices": list(o.choices),
                "parts": list(o.parts),
            }
            for o in view.options.values()
        ],
        "columns": [
            {"name": c.name, "unit": c.unit, "doc": c.doc, "nullable": c.nullable}
            for c in view.columns
        ],
    }


def _kind(option: Option) -> str:
    if option.choices:
        return "choice"
    kinds = get_args(option.type) or (option.type,)
    known = {bool: "flag", int: "int", float: "float"}
    return next((word for kind, word in known.items() if kind in kinds), "text")
