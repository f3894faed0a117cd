"""Every rule: those that ship with selftime, and those of installed packages.

A package joins with the entry point group `selftime.rules`, each entry naming a `Rule`.
"""

from collections.abc import Mapping
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from types import MappingProxyType
from typing import Final

from selftime.advice.base import Rule
from selftime.advice.rules import RULES
from selftime.errors import SelftimeError, UsageError

GROUP: Final = "selftime.rules"
"""The entry point group of third parties."""


FORMER_NAMES: Final = {
    "accumulation_exchange": "accumulation_communication",
    "exchanged_metric": "communicated_metric",
    "exposed_exchange": "exposed_communication",
    "partial_wave": "wave_quantization",
}
"""Names that rules had in the release before, and what they are called now."""


@cache
def rules() -> Mapping[str, Rule]:
    """Every rule by name, those of other packages after our own."""
    known = dict(RULES)
    for entry in sorted(entry_points(group=GROUP), key=lambda entry: entry.name):
        loaded = _load(entry)
        if loaded.name in known:
            raise SelftimeError(
                f"the rule `{loaded.name}` of {_package(entry)} has the name of another rule; "
                "rename it or uninstall the package"
            )
        known[loaded.name] = loaded
    return MappingProxyType(known)


def find(name: str) -> Rule:
    """The rule of that name, or one sentence that lists those there are."""
    known, name = rules(), FORMER_NAMES.get(name, name)
    if name not in known:
        raise UsageError(
            f"there is no rule `{name}`; there are {', '.join(sorted(known)) or 'none'}"
        )
    return known[name]


def _load(entry: EntryPoint) -> Rule:
    try:
        loaded = entry.load()
    except Exception as error:  # a stranger's package may raise anything
        raise SelftimeError(
            f"the rule `{entry.name}` of {_package(entry)} cannot be loaded "
            f"({type(error).__name__}: {error}); update or uninstall the package"
        ) from error
    if not isinstance(loaded, Rule):
        raise SelftimeError(
            f"the rule `{entry.name}` of {_package(entry)} is of the type {type(loaded).__name__}; "
            "make it a function under `@rule`, or uninstall the package"
        )
    return loaded


def _package(entry: EntryPoint) -> str:
    return "an unknown package" if entry.dist is None else f"`{entry.dist.name}`"
