"""The JSON schema of each kind of JSON that is written for other programs: `KIND.json`, here.

They are JSON Schema 2020-12, see https://json-schema.org/draft/2020-12. Each describes version 1 of
its kind. What is required in it, and of which type, is a promise: `tests/agents/test_schemas.py`
keeps it.
"""

import json
from importlib.resources import files
from typing import Any

from selftime.errors import UsageError

__all__ = ["kinds", "schema"]

_ENDING = ".json"


def kinds() -> list[str]:
    """The kinds that have one, such as `advice` of `selftime.advice/1`."""
    names = (file.name for file in files(__name__).iterdir())
    return sorted(name.removesuffix(_ENDING) for name in names if name.endswith(_ENDING))


def schema(kind: str) -> dict[str, Any]:
    """The schema of a kind.

    Raises:
        UsageError: There is no such kind.
    """
    known = kinds()
    if kind not in known:
        raise UsageError(f"there is no format `{kind[:40]}`; there are {', '.join(known)}")
    found = json.loads((files(__name__) / f"{kind}{_ENDING}").read_text(encoding="utf-8"))
    return dict(found)
