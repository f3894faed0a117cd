"""Logdirs, TensorBoard's own objects, and the real TensorBoard over the plugin."""

import gzip
import json
import os
import time
import warnings
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from werkzeug.test import Client

pytest.importorskip("tensorboard")

with warnings.catch_warnings():  # TensorBoard's vendored packages warn of themselves
    warnings.simplefilter("ignore", DeprecationWarning)
    from tensorboard.backend.application import TensorBoardWSGI
    from tensorboard.plugins.base_plugin import TBContext

from selftime.tensorboard import Loader

EVENT = {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 1.5, "dur": 2}
TRACE = {"schemaVersion": 1, "deviceProperties": [], "traceEvents": [EVENT]}


class Logs:
    """A folder that TensorBoard is pointed at."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def write(self, name: str, document: Any = TRACE, *, age_s: float = 60) -> Path:
        """A trace of that name, as if written so long ago."""
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        text = json.dumps(document).encode()
        path.write_bytes(gzip.compress(text) if name.endswith(".gz") else text)
        self.date(path, age_s)
        return path

    @staticmethod
    def date(path: Path, age_s: float) -> None:
        then = time.time() - age_s
        os.utime(path, (then, then))


@pytest.fixture
def logs(tmp_path: Path) -> Logs:
    root = tmp_path / "logs"
    root.mkdir()
    return Logs(root)


Context = Callable[..., Any]


@pytest.fixture
def context() -> Context:
    """TensorBoard's own context of a plugin, from flags as its command line leaves them."""

    def make(logdir: str = "", logdir_spec: str = "", **flags: Any) -> Any:
        told = {"host": None, "bind_all": False, **flags}
        parsed = Namespace(logdir=logdir, logdir_spec=logdir_spec, **told)
        return TBContext(flags=parsed, logdir=logdir)

    return make


Board = Callable[..., Client]


@pytest.fixture
def board(logs: Logs, context: Context) -> Board:
    """A browser at TensorBoard's own app with our plugin in it."""

    def start(path_prefix: str = "", **flags: Any) -> Client:
        plugin = Loader().load(context(**{"logdir": str(logs.root), **flags}))
        return Client(TensorBoardWSGI([plugin], path_prefix=path_prefix))

    return start
