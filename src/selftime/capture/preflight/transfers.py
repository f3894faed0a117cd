"""Copies tensors between the host and the simulated device, and reports waits for the copies.

Copies are reported as CUDA behaves. From pageable memory the host waits until the data are staged;
from pinned memory it waits unless the copy is `non_blocking`. To the host it waits unless the copy
is `non_blocking`, because PyTorch then copies into pinned memory.
"""

# ruff: noqa: SLF001 - torch has no public name for `DisableTorchFunction`

from typing import Any

import torch

from selftime.capture.preflight import fixes
from selftime.capture.preflight.locations import TensorLocation, location_of, set_location
from selftime.capture.preflight.reporter import WaitReporter


class _DifferentiableTransfer(torch.autograd.Function):
    """Autograd function that copies a tensor between devices, and its gradient back."""

    @staticmethod
    def forward(
        ctx: Any, tensor: torch.Tensor, reporter: WaitReporter, destination: TensorLocation
    ) -> torch.Tensor:
        ctx.reporter, ctx.source_location = reporter, location_of(tensor)
        return _copy_tensor_data_to(tensor, reporter, destination)

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> tuple[torch.Tensor | None, None, None]:
        (grad,) = grads
        if grad is None:
            return None, None, None
        with torch._C.DisableTorchFunction():
            report_copy(
                ctx.reporter, grad, ctx.source_location, "aten::_to_copy", non_blocking=False
            )
            return _copy_tensor_data_to(grad, ctx.reporter, ctx.source_location), None, None


def transfer_tensor(
    reporter: WaitReporter,
    tensor: torch.Tensor,
    destination: TensorLocation,
    op: str,
    *,
    non_blocking: bool,
) -> torch.Tensor:
    """Copies a tensor to the host or the simulated device, and reports the copy."""
    report_copy(reporter, tensor, destination, op, non_blocking=non_blocking)
    if destination is TensorLocation.HOST and non_blocking:
        destination = TensorLocation.PINNED
    if tensor.requires_grad and torch.is_grad_enabled():
        result: torch.Tensor = _DifferentiableTransfer.apply(tensor, reporter, destination)  # type: ignore[no-untyped-call]  # torch's own
        reporter.user_frames.record_origin_of_results([result])
        return result
    return _copy_tensor_data_to(tensor, reporter, destination)


def report_copy(
    reporter: WaitReporter,
    tensor: torch.Tensor,
    destination: TensorLocation,
    op: str,
    *,
    non_blocking: bool,
) -> None:
    """Reports a copy of a tensor between host and device, if it is not empty."""
    source = location_of(tensor)
    if tensor.numel() == 0 or source is TensorLocation.UNDECIDED:
        return
    if destination is TensorLocation.DEVICE:
        if source is not TensorLocation.PINNED:
            reporter.report_wait(op, "copy_to_device", fixes.FIX_FOR_PAGEABLE_COPY)
        elif not non_blocking:
            reporter.report_wait(op, "copy_to_device", fixes.FIX_FOR_BLOCKING_PINNED_COPY)
        else:
            reporter.report_harmless_copy(op)
    elif source is TensorLocation.DEVICE:
        if non_blocking:
            reporter.report_harmless_copy(op)
        else:
            reporter.report_wait(op, "copy_to_host", fixes.FIX_FOR_COPY_TO_HOST)


def _copy_tensor_data_to(
    tensor: torch.Tensor, reporter: WaitReporter, destination: TensorLocation
) -> torch.Tensor:
    with reporter.pass_through():
        return set_location(tensor.detach().clone(), destination)
