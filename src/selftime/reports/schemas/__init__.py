"""Reads the JSON schemas of the JSON formats that selftime writes, from files in this folder.

They use JSON Schema 2020-12, see https://json-schema.org/draft/2020-12. Each describes version 1 of
its format. Required keys and types do not change: `tests/reports/test_schemas.py` tests that.
"""

import json
from importlib.resources import files
from typing import Any

from selftime.errors import UsageError

__all__ = ["kinds", "schema"]

_SCHEMA_FILE_SUFFIX = ".json"


def kinds() -> list[str]:
    """Returns the kinds of JSON formats with a schema, such as `advice` of `selftime.advice/1`."""
    names = (file.name for file in files(__name__).iterdir())
    return sorted(
        name.removesuffix(_SCHEMA_FILE_SUFFIX)
        for name in names
        if name.endswith(_SCHEMA_FILE_SUFFIX)
    )


def schema(kind: str) -> dict[str, Any]:
    """Returns the JSON schema of a kind of format, such as `advice`.

    Raises:
        UsageError: There is no such kind.
    """
    known_kinds = kinds()
    if kind not in known_kinds:
        raise UsageError(f"there is no format `{kind[:40]}`; there are {', '.join(known_kinds)}")
    document = json.loads(
        (files(__name__) / f"{kind}{_SCHEMA_FILE_SUFFIX}").read_text(encoding="utf-8")
    )
    return dict(document)
