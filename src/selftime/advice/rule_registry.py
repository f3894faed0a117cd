"""Finds all advice rules: those that ship with selftime, and those of other packages.

A package joins with the entry point group `selftime.rules`, each entry naming a `Rule`.
"""

from collections.abc import Mapping
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from types import MappingProxyType
from typing import Final

from selftime.advice.rule_definition import Rule
from selftime.advice.rules import RULES
from selftime.errors import SelftimeError, UsageError

RULE_ENTRY_POINT_GROUP: Final = "selftime.rules"
"""Name of the entry point group in which other packages register their rules."""


CURRENT_NAMES_OF_RENAMED_RULES: Final = {
    "accumulation_exchange": "accumulation_communication",
    "exchanged_metric": "communicated_metric",
    "exposed_exchange": "exposed_communication",
    "partial_wave": "wave_quantization",
}
"""Maps the former name of each renamed rule to its current name."""


@cache
def rules_by_name() -> Mapping[str, Rule]:
    """Returns every rule by name, selftime's own before rules of other packages."""
    known = dict(RULES)
    for entry_point in sorted(
        entry_points(group=RULE_ENTRY_POINT_GROUP), key=lambda entry_point: entry_point.name
    ):
        loaded = _load_rule(entry_point)
        if loaded.name in known:
            raise SelftimeError(
                f"the rule `{loaded.name}` of {_quoted_package_name(entry_point)} has the name of "
                "another rule; rename it or uninstall the package"
            )
        known[loaded.name] = loaded
    return MappingProxyType(known)


def find(name: str) -> Rule:
    """Returns the rule whose name, or former name, is `name`.

    Raises:
        UsageError: There is no such rule; the message lists all rules.
    """
    known, name = rules_by_name(), CURRENT_NAMES_OF_RENAMED_RULES.get(name, name)
    if name not in known:
        raise UsageError(
            f"there is no rule `{name}`; there are {', '.join(sorted(known)) or 'none'}"
        )
    return known[name]


def _load_rule(entry_point: EntryPoint) -> Rule:
    try:
        loaded = entry_point.load()
    except Exception as error:  # a stranger's package may raise anything
        raise SelftimeError(
            f"the rule `{entry_point.name}` of {_quoted_package_name(entry_point)} cannot be "
            f"loaded ({type(error).__name__}: {error}); update or uninstall the package"
        ) from error
    if not isinstance(loaded, Rule):
        raise SelftimeError(
            f"the rule `{entry_point.name}` of {_quoted_package_name(entry_point)} is of the type "
            f"{type(loaded).__name__}; make it a function under `@rule`, or uninstall the package"
        )
    return loaded


def _quoted_package_name(entry_point: EntryPoint) -> str:
    return "an unknown package" if entry_point.dist is None else f"`{entry_point.dist.name}`"
