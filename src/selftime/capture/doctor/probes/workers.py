"""Starts a DataLoader worker by each start method and checks that its batch arrives."""

import multiprocessing
from typing import Any

import torch
from torch.utils.data import DataLoader, Dataset


class _TwoRowDataset(Dataset[torch.Tensor]):
    def __len__(self) -> int:
        return 2

    def __getitem__(self, index: int) -> torch.Tensor:
        return torch.full((4,), float(index))


def run_dataloader_workers() -> dict[str, Any]:
    methods = [
        method for method in ("fork", "spawn") if method in multiprocessing.get_all_start_methods()
    ]
    return {
        "default": multiprocessing.get_start_method(),
        "failed": {
            method: failed
            for method in methods
            if (failed := _worker_start_error(method)) is not None
        },
        "ways": methods,
    }


def _worker_start_error(start_method: str) -> str | None:
    """Returns why a worker process started by `fork` or `spawn` sends no data; None if it does."""
    try:
        loader = DataLoader(
            _TwoRowDataset(), batch_size=2, num_workers=1, multiprocessing_context=start_method
        )
        (rows,) = list(loader)
    except Exception as error:  # noqa: BLE001 - the error is the result
        return f"{type(error).__name__}: {error}".splitlines()[0]
    return None if rows.sum().item() == 4.0 else "the batch from the worker has wrong values"
