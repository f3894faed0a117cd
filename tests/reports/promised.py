"""What a schema promises to whoever reads a document, and what a change of it breaks."""

import json
from collections.abc import Iterator
from typing import Any

__all__ = ["broken", "promises"]


def promises(schema: dict[str, Any]) -> dict[str, str]:
    """Each required field by its path, and what it holds."""
    return dict(_of(schema, schema, ""))


def _of(part: dict[str, Any], whole: dict[str, Any], path: str) -> Iterator[tuple[str, str]]:
    found = _followed(part, whole)
    for name in found.get("required", ()):
        inner = f"{path}.{name}".removeprefix(".")
        field = _followed(found["properties"][name], whole)
        yield inner, _kind(field)
        yield from _of(field, whole, inner)
    if isinstance(found.get("items"), dict):
        items = _followed(found["items"], whole)
        yield f"{path}[]", _kind(items)
        yield from _of(items, whole, f"{path}[]")
    if isinstance(found.get("additionalProperties"), dict):
        values = _followed(found["additionalProperties"], whole)
        yield f"{path}.*", _kind(values)
        yield from _of(values, whole, f"{path}.*")


def _followed(part: dict[str, Any], whole: dict[str, Any]) -> dict[str, Any]:
    if "$ref" not in part:
        return part
    found = whole
    for name in part["$ref"].removeprefix("#/").split("/"):
        found = found[name]
    return found


def _kind(part: dict[str, Any]) -> str:
    if "const" in part:
        return json.dumps(part["const"])
    if "enum" in part:
        return " | ".join(sorted(map(json.dumps, part["enum"])))
    kinds = part["type"]
    return " | ".join(sorted([kinds] if isinstance(kinds, str) else kinds))


def broken(kind: str, promised: dict[str, str], schema: dict[str, Any]) -> list[str]:
    """A sentence for each promise that the schema no longer keeps."""
    kept = promises(schema)
    advice = f"leave `selftime.{kind}/1` as it was, and make `selftime.{kind}/2`"
    gone = [f"`{path}` is no longer there: {advice}" for path in promised if path not in kept]
    other = [
        f"`{path}` was {was} and is {kept[path]}: {advice}"
        for path, was in promised.items()
        if path in kept and kept[path] != was
    ]
    return gone + other
