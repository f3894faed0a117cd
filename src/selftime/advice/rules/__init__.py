"""One file for each rule; the list is the registry."""

from selftime.advice.base import Rule
from selftime.advice.rules import (
    double_precision,
    loop_indexing,
    recompilation,
    single_tensor_optimizer,
    slow_input,
    unfused_attention,
)

__all__ = ["RULES"]

RULES: dict[str, Rule] = {
    rule.name: rule
    for rule in (
        slow_input.check,
        single_tensor_optimizer.check,
        double_precision.check,
        unfused_attention.check,
        recompilation.check,
        loop_indexing.check,
    )
}
"""Every rule that ships, by name."""
