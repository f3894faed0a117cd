"""Collects the names in a trace that its user gave: annotations, modules, kernels and others.

A name alone does not tell whose it is; its event's category does. So names are collected in a first
pass through the file, and hidden in the second wherever they stand.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from selftime.names import public_names

_KIND_BY_CATEGORY: Final = {
    "cpu_op": "operator",
    "operator": "operator",
    "kernel": "kernel",
    "python_function": "frame",
    "user_annotation": "annotation",
    "gpu_user_annotation": "annotation",
}
"""What an event of a category is called; others are calls of a driver, marks and counters."""


class _NamedEvent(msgspec.Struct, gc=False):
    ph: Any = None
    name: Any = None
    cat: Any = None
    args: Any = None


_EVENTS_DECODER: Final = msgspec.json.Decoder(list[_NamedEvent])


@dataclass(slots=True)
class UserNames:
    """The names in a trace, as its events tell whose they are."""

    private: dict[str, str] = field(default_factory=dict)
    """Maps each name that its user gave to what it names, such as `annotation`."""
    private_categories: set[str] = field(default_factory=set)
    """Categories of events that no recorder writes."""
    kept: dict[str, set[str]] = field(default_factory=dict)
    """By kind the names that are kept, since recorders and public libraries give them."""

    def receive_events(self, text: bytes) -> None:
        """Collects the names of events, given as JSON text."""
        for event in _EVENTS_DECODER.decode(b"[%b]" % text):
            name, category = event.name, event.cat
            if isinstance(category, str) and not public_names.is_public_category(category):
                self.private_categories.add(category)
            if event.ph == "M":
                for label in _labels_of(event.args):
                    self._collect("label", label, is_public=public_names.is_public_label(label))
            elif isinstance(name, str) and name:
                known = category if isinstance(category, str) else ""
                kind = _KIND_BY_CATEGORY.get(known.lower(), "other")
                is_public = public_names.is_public_name(known, name)
                self._collect(kind, name, is_public=is_public)

    def _collect(self, kind: str, text: str, *, is_public: bool) -> None:
        if is_public:
            self.kept.setdefault(kind, set()).add(text)
        else:
            self.private.setdefault(text, kind)


def _labels_of(arguments: object) -> Iterator[str]:
    if isinstance(arguments, dict):
        for key in ("name", "labels"):
            text = arguments.get(key)
            if isinstance(text, str) and text:
                yield text
