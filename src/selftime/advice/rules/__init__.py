"""One file for each rule; the list is the registry."""

from selftime.advice.base import Rule
from selftime.advice.rules import (
    anomaly_mode,
    branch_on_tensor,
    copy_to_host,
    data_dependent_shape,
    device_allocation,
    double_precision,
    eager_decoding,
    evaluation_with_gradients,
    explicit_synchronize,
    finite_check,
    frequent_logging,
    garbage_collection,
    gradient_zeroing,
    graph_break,
    growing_cache,
    hidden_sync,
    loop_indexing,
    memory_leak,
    pageable_copy,
    recompilation,
    scalar_read,
    single_precision,
    single_tensor_optimizer,
    slow_input,
    small_kernels,
    small_upload,
    strided_operand,
    unaligned_matrix,
    unfused_attention,
    unhidden_copy,
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
        strided_operand.check,
        scalar_read.check,
        branch_on_tensor.check,
        copy_to_host.check,
        data_dependent_shape.check,
        explicit_synchronize.check,
        finite_check.check,
        hidden_sync.check,
        pageable_copy.check,
        small_upload.check,
        unhidden_copy.check,
        device_allocation.check,
        small_kernels.check,
        memory_leak.check,
        single_precision.check,
        anomaly_mode.check,
        growing_cache.check,
        unaligned_matrix.check,
        frequent_logging.check,
        eager_decoding.check,
    )
}
"""Every rule that ships, by name."""
