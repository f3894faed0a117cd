"""Texts that tell the user how to avoid each kind of wait of the host for the device."""

from typing import Final

FIX_FOR_ITEM: Final = (
    "keep the value on the device (`total += loss.detach()`) and read it every N steps"
)
FIX_FOR_CONDITION: Final = (
    "choose on the device with `torch.where`, check with `torch._assert_async`, or check only "
    "every N steps: the host reads the condition"
)
FIX_FOR_MODULE_TRANSFER: Final = "move the module once, before the loop"
FIX_FOR_BOOLEAN_MASK: Final = (
    "keep the shape: `torch.where` or a multiplication by the mask, or `ignore_index` in the loss"
)
FIX_FOR_MASKED_ASSIGNMENT: Final = (
    "use `torch.where(mask, value, x)`, or a Python number as the value, which needs no indices"
)
FIX_FOR_NONZERO: Final = (
    "use the mask itself in `torch.where(mask, a, b)` or `masked_fill`, or "
    "`torch.nonzero_static(x, size=n)`"
)
FIX_FOR_UNIQUE: Final = (
    "ask only for what is needed: `x.amin() != x.amax()` for two values or more, "
    "`torch.scatter_add` for counts of known classes"
)
FIX_FOR_BINCOUNT: Final = (
    "count into a tensor of known size: "
    "`torch.zeros(n, device=x.device).scatter_add_(0, x, torch.ones_like(x))`"
)
FIX_FOR_ONE_HOT: Final = "name the number of classes: `one_hot(x, num_classes)`"
FIX_FOR_REPEAT_INTERLEAVE: Final = (
    "pass `output_size=`, the sum of the repeats, if the program knows it"
)
FIX_FOR_EQUAL: Final = "compare on the device, `(a == b).all()`, and read the answer every N steps"
FIX_FOR_LINALG_ERROR_CHECK: Final = (
    "use the `_ex` variant (`torch.linalg.inv_ex`, `cholesky_ex`, `solve_ex`), which returns the "
    "error code on the device, and look at it every N steps"
)
FIX_FOR_LINALG_SOLVER: Final = (
    "call it outside the step, or every N steps: the host reads whether CUDA's solver succeeded"
)
FIX_FOR_NORMAL: Final = (
    "draw `mean + std * torch.randn_like(std)`: `torch.normal` reads the smallest `std`; in "
    "torch.distributions use `rsample`"
)
FIX_FOR_CTC_LOSS: Final = (
    "the loss copies the lengths to the host; cuDNN's CTC does not, with int32 targets on the host"
)
FIX_FOR_HOST_SCALAR: Final = (
    "pass a Python number, or make the tensor on the device before the loop"
)
FIX_FOR_PRODUCT_GRADIENT: Final = (
    "the gradient of a product looks for zeros on the host: use `log().sum().exp()` where the "
    "values are positive"
)
FIX_FOR_TORCH_SAVE: Final = "save every N steps: each tensor is copied to the host"
FIX_FOR_ISIN: Final = "pass `assume_unique=True` if both are unique, or compare with `==` and `any`"
FIX_FOR_HISTC: Final = "name the range: `torch.histc(x, bins, min, max)`"
FIX_FOR_MODE: Final = (
    "`mode` waits for the device with more than 2048 values: count classes with `scatter_add_`"
)
FIX_FOR_DEVICE_SCALAR: Final = (
    "pass a Python number, or use `torch.where`: this operator reads its value"
)
FIX_FOR_ASSIGNED_SCALAR: Final = (
    "a Python number is copied to the device for this index: use `index_fill_`, "
    "`torch.where`, or a value tensor that is on the device"
)
FIX_FOR_HOST_INDEX: Final = "build the index on the device once, before the loop, or use slices"
FIX_FOR_CONSTANT: Final = (
    "make it once before the loop, or on the device with `torch.full`, `arange`, `zeros`"
)
FIX_FOR_PAGEABLE_COPY: Final = (
    "pin the memory (`DataLoader(pin_memory=True)` or `.pin_memory()`) and copy with "
    "`non_blocking=True`"
)
FIX_FOR_BLOCKING_PINNED_COPY: Final = (
    "the memory is pinned: add `non_blocking=True`, and the host does not wait"
)
FIX_FOR_BATCH_COPY: Final = "copy the batch in one piece before the step"
FIX_FOR_TENSOR_LIST: Final = "use `torch.stack`, which joins them on the device"
FIX_FOR_COPY_TO_HOST: Final = (
    "copy less often, or copy with `non_blocking=True`, record an event, and read it one step later"
)
FIX_FOR_COPY_TO_PAGEABLE_HOST: Final = (
    "copy into pinned memory, record an event, and read it one step later"
)
FIX_FOR_TOLIST: Final = "keep it on the device; copy what is needed once, every N steps"
FIX_FOR_PRINTING: Final = "print every N steps, and a detached copy"
FIX_FOR_SEARCHSORTED: Final = "sort the sequence itself: the order is checked on the host"
FIX_FOR_SEGMENT_REDUCE: Final = "pass `unsafe=True` if the lengths are known to be right"
FIX_FOR_SPARSE_TENSOR: Final = (
    "build the sparse tensor once, outside the step: the host reads its size"
)
FIX_FOR_SYNCHRONIZE: Final = "leave it out; for timing use CUDA events and read them later"
FIX_FOR_EMPTY_CACHE: Final = "leave it out of the step: giving memory back waits for all work"

_FIX_BY_TORCH_FILE: Final = {
    "amp/grad_scaler.py": (
        "the scaler asks whether gradients overflowed: bfloat16 needs no scaler, and an optimizer "
        "with `fused=True` asks on the device"
    ),
    "nn/utils/clip_grad.py": "leave out `error_if_nonfinite`, or check every N steps",
    "distributions/": "pass `validate_args=False`: the host reads the result of the argument check",
    "optim/lr_scheduler.py": (
        "pass the scheduler a Python number, read from the device every N steps"
    ),
    "optim/lbfgs.py": "LBFGS decides on the host: step less often, or use another optimizer",
    "optim/asgd.py": "pass `capturable=True`, which keeps the averages on the device",
    "optim/swa_utils.py": "update the average every N steps",
    "nn/modules/batchnorm.py": (
        "set `momentum` to a number: with None the host reads the batch counter"
    ),
    "nn/modules/transformer.py": (
        "pass `is_causal=`: without it the host reads the mask to see whether it is causal"
    ),
}
"""Maps a file or folder of torch, relative to torch's folder, to the advice if its Python code
causes the wait."""


def fix_in_context(fix: str, torch_files: frozenset[str], *, reads_condition: bool) -> str:
    """Returns the advice for a wait: `fix`, or a more specific one if a known torch file caused it.

    `torch_files` are the files of torch on the stack; `reads_condition` tells whether the user's
    line asks for a truth value.
    """
    if fix == FIX_FOR_PAGEABLE_COPY and "nn/modules/module.py" in torch_files:
        return FIX_FOR_MODULE_TRANSFER
    if fix != FIX_FOR_ITEM:
        return fix
    for part, better in _FIX_BY_TORCH_FILE.items():
        if any(file.startswith(part) for file in torch_files):
            return better
    return FIX_FOR_CONDITION if reads_condition else fix
