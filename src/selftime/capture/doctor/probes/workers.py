"""Start a worker of a DataLoader in each way that the system has: does its tensor arrive?"""

import multiprocessing
from typing import Any

import torch
from torch.utils.data import DataLoader, Dataset


class _Rows(Dataset[torch.Tensor]):
    def __len__(self) -> int:
        return 2

    def __getitem__(self, index: int) -> torch.Tensor:
        return torch.full((4,), float(index))


def answer() -> dict[str, Any]:
    ways = [way for way in ("fork", "spawn") if way in multiprocessing.get_all_start_methods()]
    return {
        "default": multiprocessing.get_start_method(),
        "failed": {way: failed for way in ways if (failed := _failure(way)) is not None},
        "ways": ways,
    }


def _failure(way: str) -> str | None:
    """Why a worker that is started so hands nothing over."""
    try:
        loader = DataLoader(_Rows(), batch_size=2, num_workers=1, multiprocessing_context=way)
        (rows,) = list(loader)
    except Exception as error:  # noqa: BLE001 - it is what was found out
        return f"{type(error).__name__}: {error}".splitlines()[0]
    return None if rows.sum().item() == 4.0 else "the rows that arrived are others"
