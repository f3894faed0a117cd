"""Describes each view as JSON, so that the web page can draw its table and options."""

from typing import Any, get_args

from selftime.reports.labels import column_labels
from selftime.views import Option, View


def view_description_data(view: View[Any]) -> dict[str, Any]:
    """Returns a view's name, texts, columns and options as the page's JSON object `ViewSpec`."""
    return {
        "name": view.name,
        "title": view.title,
        "doc": view.doc,
        "needs": list(view.needs),
        "across": view.compares_ranks,
        "options": [
            {
                "name": option.name,
                "type": _option_type_name(option),
                "default": option.default,
                "choices": list(option.choices),
                "parts": list(option.joinable_words),
            }
            for option in view.options.values()
        ],
        "columns": [
            {
                "name": column.name,
                "unit": column.unit,
                "doc": column.doc,
                "nullable": column.nullable,
                "labels": label_data(view.name, column.name),
            }
            for column in view.columns
        ],
    }


def label_data(table: str, column: str) -> dict[str, dict[str, str]]:
    """Returns the labels of a column's values as the page's JSON object: text and doc by value."""
    labels = column_labels(table, column)
    return {value: {"text": label.text, "doc": label.doc} for value, label in labels.items()}


def _option_type_name(option: Option) -> str:
    """Returns the kind of an option's value: choice, flag, int, float or text."""
    if option.choices:
        return "choice"
    types = get_args(option.type) or (option.type,)
    type_words = {bool: "flag", int: "int", float: "float"}
    return next((word for type_, word in type_words.items() if type_ in types), "text")
