"""Runs a function on many files on a Ray cluster.

The only module that imports Ray.
"""

import os
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import Any, Final, TypeVar

from selftime.errors import MissingDependency, UsageError
from selftime.scale.engine import MAX_READ_ATTEMPTS_PER_FILE, FileLostByReader, is_in_process_memory

T = TypeVar("T")

_MAX_SUBMITTED_UNFINISHED_TASKS: Final = 1024
"""Largest number of unfinished Ray tasks at a time; enough to make a cluster start machines."""
_CLUSTER_CONNECTION_TIMEOUT_S: Final = 10.0
"""Longest time in seconds to wait until the cluster accepts a connection."""
_TEXT_IN_RAY_IMPORT_ERROR: Final = "failed to import on the worker"
"""Text in Ray's error message that means that a worker cannot import a function."""
_MAX_QUOTED_ERROR_CHARACTERS: Final = 200
"""Largest number of characters of an error that a message quotes."""
_ENVIRONMENT_VARIABLES_OF_TASKS: Final = {"SELFTIME_WORKERS": "1", "POLARS_MAX_THREADS": "1"}
"""Environment variables of the Ray tasks, each of which uses one core."""


class RayEngine:
    """Runs a function on files on a Ray cluster; each file uses one core."""

    def __init__(self, address: str | None = None, workers: int | None = None) -> None:
        """Uses the Ray cluster at `address`, for at most `workers` files at once.

        Args:
            address: The cluster's address, as for `ray.init`. Default: RAY_ADDRESS, else the
                cluster on this machine. An existing connection of the program takes precedence.
            workers: Files read at once; by default as many as the cluster has cores.
        """
        self._address = address
        self._workers = workers

    def map(
        self, task: Callable[[str], T], paths: Sequence[str]
    ) -> Iterator[tuple[str, T | FileLostByReader]]:
        """Yields (path, result of the task) for each file, in order of completion."""
        unreachable_path = next(filter(is_in_process_memory, paths), None)
        if unreachable_path is not None:
            raise UsageError(
                f"`{unreachable_path}` exists only in this process: read it with the local engine"
            )
        with self._connected_ray_module() as ray:
            yield from _RayTaskRunner(
                ray, task, self._workers or _MAX_SUBMITTED_UNFINISHED_TASKS
            ).results_by_path(paths)

    @contextmanager
    def _connected_ray_module(self) -> Iterator[Any]:
        """Connects to the cluster within a `with` block; yields the module `ray`."""
        ray = _import_ray_module()
        if ray.is_initialized():
            yield ray
            return
        address = self._address or os.environ.get("RAY_ADDRESS") or "auto"
        try:
            _raise_if_cluster_does_not_listen(address)
            ray.init(address, log_to_driver=False, logging_level="ERROR")
        except (OSError, RuntimeError, ValueError, AssertionError) as error:
            first_line = str(error).partition("\n")[0] or type(error).__name__
            place = "on this machine" if address == "auto" else f"at `{address}`"
            raise UsageError(
                f"no Ray cluster answers {place}: start one with `ray start --head`, or give the "
                f"address of one with `--address` or RAY_ADDRESS ({first_line})"
            ) from error
        try:
            yield ray
        finally:
            ray.shutdown()


class _RayTaskRunner:
    """Runs the Ray tasks of one call of `map`; repeats tasks whose process ended unexpectedly."""

    def __init__(self, ray: Any, task: Callable[[str], Any], max_pending: int) -> None:
        self._ray = ray
        self._max_pending = max_pending
        self._task = ray.put(task)
        # The process ends after one call, to free all of its memory.
        self._remote_task = ray.remote(
            num_cpus=1,
            max_retries=0,
            max_calls=1,
            runtime_env={"env_vars": _ENVIRONMENT_VARIABLES_OF_TASKS},
        )(_run_task_in_folder)
        self._process_errors = (
            ray.exceptions.WorkerCrashedError,
            ray.exceptions.NodeDiedError,
            ray.exceptions.OutOfMemoryError,
            ray.exceptions.LocalRayletDiedError,
            ray.exceptions.ObjectLostError,
        )

    def results_by_path(self, paths: Sequence[str]) -> Iterator[tuple[str, Any]]:
        """Yields (path, result of the task) for each file, in order of completion."""
        remaining_paths = iter(paths)
        running = {
            self._submit_file(path): (path, 1)
            for path in islice(remaining_paths, self._max_pending)
        }
        while running:
            [finished], _ = self._ray.wait(list(running), num_returns=1)
            path, attempts = running.pop(finished)
            try:
                result = self._ray.get(finished)
            except self._process_errors:
                if attempts < MAX_READ_ATTEMPTS_PER_FILE:
                    running[self._submit_file(path)] = path, attempts + 1
                    continue
                result = FileLostByReader(path)
            except self._ray.exceptions.RayTaskError as error:
                raise self._exception_of_failed_task(error.cause) from error
            running |= {self._submit_file(path): (path, 1) for path in islice(remaining_paths, 1)}
            yield path, result

    def _exception_of_failed_task(self, cause: Exception) -> Exception:
        """Returns the task's exception, or a UsageError if the cluster cannot import the task."""
        message = str(cause)
        if not (
            isinstance(cause, self._ray.exceptions.RaySystemError)
            or _TEXT_IN_RAY_IMPORT_ERROR in message
        ):
            return cause
        error_line = next((line for line in reversed(message.splitlines()) if "Error" in line), "")
        return UsageError(
            "a machine of the Ray cluster lacks the code of the task: install the same version "
            "of selftime on all of them "
            f"({error_line.strip()[:_MAX_QUOTED_ERROR_CHARACTERS] or type(cause).__name__})"
        )

    def _submit_file(self, path: str) -> Any:
        """Submits the task for a file to the cluster; returns Ray's reference to its result."""
        return self._remote_task.remote(self._task, path, str(Path.cwd()))


def _run_task_in_folder(task: Callable[[str], T], path: str, caller_folder: str) -> T:
    """Runs the task on a file; `caller_folder` is the base of a relative path."""
    with suppress(OSError):  # if it is missing here, so is the file, which is reported
        os.chdir(caller_folder)
    return task(path)


def _raise_if_cluster_does_not_listen(address: str) -> None:
    """Raises an OSError if the cluster's address refuses connections; Ray would try for minutes.

    Raises:
        OSError: Nothing listens.
    """
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if host and port.isdigit():
        socket.create_connection(
            (host.strip("[]"), int(port)), _CLUSTER_CONNECTION_TIMEOUT_S
        ).close()


def _import_ray_module() -> Any:
    """Imports the module `ray`; if it is missing, raises an error that says how to install it."""
    try:
        return import_module("ray")
    except ModuleNotFoundError as error:
        raise MissingDependency(
            "the engine `ray` needs Ray, which is not installed: "
            "install the extra `ray` of selftime (README, Install)"
        ) from error
