"""One file for each rule; the list is the registry."""

from selftime.advice.base import Rule
from selftime.advice.rules import (
    double_precision,
    evaluation_with_gradients,
    garbage_collection,
    gradient_zeroing,
    graph_break,
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
        graph_break.check,
        garbage_collection.check,
        gradient_zeroing.check,
        evaluation_with_gradients.check,
    )
}
"""Every rule that ships, by name."""
