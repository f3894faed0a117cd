"""Tasks on a Ray cluster: each file is read where its task runs, so near to where it lies.

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
from selftime.scale.engine import TRIES, Lost, is_private

T = TypeVar("T")

_AHEAD: Final = 1024
"""Tasks that wait or run at once: enough for a cluster that grows with what waits."""
_PATIENCE_S: Final = 10.0
"""A cluster that does not take a connection within this does not answer."""
_UNKNOWN: Final = "failed to import on the worker"
"""What Ray says of a function that a worker cannot import."""
_MOST_TOLD: Final = 200
_ENVIRONMENT: Final = {"SELFTIME_WORKERS": "1", "POLARS_MAX_THREADS": "1"}
"""A task takes one core."""


class Ray:
    """Maps over files on a Ray cluster, one core a task."""

    def __init__(self, address: str | None = None, workers: int | None = None) -> None:
        """Use a cluster that is there.

        Args:
            address: Of the cluster, as `ray.init` takes it. RAY_ADDRESS if not given, and else the
                cluster that runs on this machine; one that the program is connected to comes first.
            workers: Files that are read at once; as many as the cluster has cores if not given.
        """
        self._address = address
        self._workers = workers

    def map(
        self, task: Callable[[str], T], places: Sequence[str]
    ) -> Iterator[tuple[str, T | Lost]]:
        private = next(filter(is_private, places), None)
        if private is not None:
            raise UsageError(f"`{private}` is in this process alone: read it with the local engine")
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
            _knock(address)
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
    """The tasks of one map; who made them tries them again, so that each has the same chances."""

    def __init__(self, ray: Any, task: Callable[[str], Any], ahead: int) -> None:
        self._ray = ray
        self._ahead = ahead
        self._task = ray.put(task)
        # After one call its process ends, and all of its memory goes back.
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
        running = {self._begun(place): (place, 1) for place in islice(waiting, self._ahead)}
        while running:
            [done], _ = self._ray.wait(list(running), num_returns=1)
            place, tries = running.pop(done)
            try:
                answer = self._ray.get(done)
            except self._ended:
                if tries < TRIES:
                    running[self._begun(place)] = place, tries + 1
                    continue
                answer = Lost(place)
            except self._ray.exceptions.RayTaskError as error:
                raise self._raised(error.cause) from error
            running |= {self._begun(place): (place, 1) for place in islice(waiting, 1)}
            yield place, answer

    def _raised(self, cause: Exception) -> Exception:
        """What a task raised; or that its process did not know what to run."""
        told = str(cause)
        if not (isinstance(cause, self._ray.exceptions.RaySystemError) or _UNKNOWN in told):
            return cause
        why = next((line for line in reversed(told.splitlines()) if "Error" in line), "")
        return UsageError(
            "a machine of the Ray cluster lacks what is to be run there: install the same version "
            f"of selftime on all of them ({why.strip()[:_MOST_TOLD] or type(cause).__name__})"
        )

    def _begun(self, place: str) -> Any:
        return self._answer.remote(self._task, place, str(Path.cwd()))


def _answer(task: Callable[[str], T], place: str, folder: str) -> T:
    """The task's answer; a path that is not absolute begins at the folder of who asks."""
    with suppress(OSError):  # this machine may lack it, and then the file too, which is told
        os.chdir(folder)
    return task(place)


def _knock(address: str) -> None:
    """Find out whether anybody listens: Ray itself tries for minutes.

    Raises:
        OSError: Nobody does.
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
