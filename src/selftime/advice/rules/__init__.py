"""One file for each rule, its page in its docstring, its test beside it."""

from selftime.advice.base import Rule

__all__ = ["RULES"]

_ALL: tuple[Rule, ...] = ()

RULES: dict[str, Rule] = {rule.name: rule for rule in _ALL}
"""Every rule that ships with selftime, by name."""
