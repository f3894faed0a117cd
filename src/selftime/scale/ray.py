"""The Ray engine: each file is read by a task on the cluster, close to where it is stored.

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
from selftime.scale.engine import ATTEMPTS, LostFile, is_in_process_memory

T = TypeVar("T")

_AHEAD: Final = 1024
"""The most tasks submitted at once: enough to make an autoscaling cluster grow."""
_PATIENCE_S: Final = 10.0
"""Seconds within which a cluster must accept a connection."""
_UNKNOWN: Final = "failed to import on the worker"
"""Ray's message if a worker cannot import a function."""
_MOST_TOLD: Final = 200
_ENVIRONMENT: Final = {"SELFTIME_WORKERS": "1", "POLARS_MAX_THREADS": "1"}
"""Environment variables of tasks, which use one core each."""


class Ray:
    """Maps over files on a Ray cluster, one core per task."""

    def __init__(self, address: str | None = None, workers: int | None = None) -> None:
        """Use an existing cluster.

        Args:
            address: The cluster's address, as for `ray.init`. Default: RAY_ADDRESS, else the
                cluster on this machine. An existing connection of the program takes precedence.
            workers: Files read at once; by default as many as the cluster has cores.
        """
        self._address = address
        self._workers = workers

    def map(
        self, task: Callable[[str], T], places: Sequence[str]
    ) -> Iterator[tuple[str, T | LostFile]]:
        private = next(filter(is_in_process_memory, places), None)
        if private is not None:
            raise UsageError(
                f"`{private}` exists only in this process: read it with the local engine"
            )
        with self._connected() as ray:
            yield from _Tasks(ray, task, self._workers or _AHEAD).answers(places)

    @contextmanager
    def _connected(self) -> Iterator[Any]:
        ray = _ray()
        if ray.is_initialized():
            yield ray
            return
        address = self._address or os.environ.get("RAY_ADDRESS") or "auto"
        try:
            _check_listening(address)
            ray.init(address, log_to_driver=False, logging_level="ERROR")
        except (OSError, RuntimeError, ValueError, AssertionError) as error:
            first = str(error).partition("\n")[0] or type(error).__name__
            where = "on this machine" if address == "auto" else f"at `{address}`"
            raise UsageError(
                f"no Ray cluster answers {where}: start one with `ray start --head`, or give the "
                f"address of one with `--address` or RAY_ADDRESS ({first})"
            ) from error
        try:
            yield ray
        finally:
            ray.shutdown()


class _Tasks:
    """The tasks of one `map`; failed ones are retried here, each equally often."""

    def __init__(self, ray: Any, task: Callable[[str], Any], ahead: int) -> None:
        self._ray = ray
        self._ahead = ahead
        self._task = ray.put(task)
        # The process ends after one call, to free all of its memory.
        self._answer = ray.remote(
            num_cpus=1, max_retries=0, max_calls=1, runtime_env={"env_vars": _ENVIRONMENT}
        )(_answer)
        self._ended = (
            ray.exceptions.WorkerCrashedError,
            ray.exceptions.NodeDiedError,
            ray.exceptions.OutOfMemoryError,
            ray.exceptions.LocalRayletDiedError,
            ray.exceptions.ObjectLostError,
        )

    def answers(self, places: Sequence[str]) -> Iterator[tuple[str, Any]]:
        waiting = iter(places)
        running = {self._submit(place): (place, 1) for place in islice(waiting, self._ahead)}
        while running:
            [done], _ = self._ray.wait(list(running), num_returns=1)
            place, tries = running.pop(done)
            try:
                answer = self._ray.get(done)
            except self._ended:
                if tries < ATTEMPTS:
                    running[self._submit(place)] = place, tries + 1
                    continue
                answer = LostFile(place)
            except self._ray.exceptions.RayTaskError as error:
                raise self._error_of(error.cause) from error
            running |= {self._submit(place): (place, 1) for place in islice(waiting, 1)}
            yield place, answer

    def _error_of(self, cause: Exception) -> Exception:
        """Returns the exception of a task, or an error if the cluster lacks the code."""
        message = str(cause)
        if not (isinstance(cause, self._ray.exceptions.RaySystemError) or _UNKNOWN in message):
            return cause
        why = next((line for line in reversed(message.splitlines()) if "Error" in line), "")
        return UsageError(
            "a machine of the Ray cluster lacks the code of the task: install the same version "
            f"of selftime on all of them ({why.strip()[:_MOST_TOLD] or type(cause).__name__})"
        )

    def _submit(self, place: str) -> Any:
        return self._answer.remote(self._task, place, str(Path.cwd()))


def _answer(task: Callable[[str], T], place: str, folder: str) -> T:
    """Returns the task's result; relative paths start at the caller's folder."""
    with suppress(OSError):  # if it is missing here, so is the file, which is reported
        os.chdir(folder)
    return task(place)


def _check_listening(address: str) -> None:
    """Check that something listens at the address: Ray itself tries for minutes.

    Raises:
        OSError: Nothing listens.
    """
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if host and port.isdigit():
        socket.create_connection((host.strip("[]"), int(port)), _PATIENCE_S).close()


def _ray() -> Any:
    try:
        return import_module("ray")
    except ModuleNotFoundError as error:
        raise MissingDependency(
            "the engine `ray` needs Ray, which is not installed; run `pip install 'selftime[ray]'`"
        ) from error
