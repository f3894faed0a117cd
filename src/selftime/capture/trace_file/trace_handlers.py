"""Provides `tensorboard_trace_handler`, which writes a trace file for each recording."""

import os
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from selftime.capture.trace_file import trace_files


def tensorboard_trace_handler(
    dir_name: str,
    worker_name: str | None = None,
    use_gzip: bool = False,
    use_python_export: bool = False,
) -> Callable[[Any], None]:
    """Returns a function for `on_trace_ready` that writes each recording to a TensorBoard folder.

    Files are named `{worker}.{time}.pt.trace.json`, where `worker_name` defaults to host and
    process. Existing files are not overwritten.
    """

    def write_trace(profile: Any) -> None:
        folder = Path(dir_name)
        worker = worker_name or f"{socket.gethostname()}_{os.getpid()}"
        folder.mkdir(parents=True, exist_ok=True)
        suffix = ".json.gz" if use_gzip else ".json"
        path = trace_files.unused_trace_path(folder, f"{worker}.{time.time_ns()}.pt.trace{suffix}")
        options = {"use_python_export": True} if use_python_export else {}
        profile.export_chrome_trace(str(path), **options)

    return write_trace
