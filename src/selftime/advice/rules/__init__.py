"""One file for each rule; the list is the registry."""

from selftime.advice.base import Rule
from selftime.advice.rules import double_precision, single_tensor_optimizer, slow_input

__all__ = ["RULES"]

RULES: dict[str, Rule] = {
    rule.name: rule
    for rule in (slow_input.check, single_tensor_optimizer.check, double_precision.check)
}
"""Every rule that ships, by name."""
