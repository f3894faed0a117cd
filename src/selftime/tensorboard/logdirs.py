"""Finds the folders passed to TensorBoard with `--logdir` or `--logdir_spec`."""

import os
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Logdir:
    """A folder with recordings that TensorBoard was started with."""

    path: str
    """Absolute local path, or a URL such as `gs://bucket/logs`."""
    name: str = ""
    """Name that the user gave the folder in `--logdir_spec`; empty without one."""

    @property
    def is_remote(self) -> bool:
        """Returns whether the folder's path is a URL."""
        return "://" in self.path

    def run_name(self, folder: str) -> str:
        """Returns TensorBoard's name of the run whose traces are in `folder`.

        The old layout's `plugins/profile` between a run and its recordings is not part of its name.
        """
        relative_folder = os.path.relpath(folder, self.path) if not self.is_remote else folder
        parts = [
            part
            for part in relative_folder.replace(os.sep, "/").split("/")
            if part not in ("", ".")
        ]
        for index in range(len(parts) - 1):
            if parts[index : index + 2] == ["plugins", "profile"]:
                del parts[index : index + 2]
                break
        if self.name:
            parts.insert(0, self.name)
        return "/".join(parts) or self.path.rstrip("/").replace(os.sep, "/").rpartition("/")[2]


def logdirs(context: Any) -> list[Logdir]:
    """Returns the folders named in TensorBoard's `TBContext`, whose fields may be missing."""
    flags = context.flags
    logdir = context.logdir or getattr(flags, "logdir", None)
    if logdir:
        return [Logdir(_absolute_path_or_url(logdir))]
    return [
        _parse_logdir_spec_entry(spec)
        for spec in (getattr(flags, "logdir_spec", None) or "").split(",")
        if spec
    ]


def _parse_logdir_spec_entry(spec_entry: str) -> Logdir:
    """Returns the folder that an entry of `--logdir_spec` names: a path, or `name:path`.

    As TensorBoard reads it, a path may hold colons if it begins with a slash, a drive or a scheme.
    """
    scheme, is_address, _ = spec_entry.partition("://")
    is_path = (
        spec_entry.startswith("/")
        or os.path.splitdrive(spec_entry)[0]
        or (is_address and scheme.replace(".", "").isalnum())
    )
    name, colon, path = spec_entry.partition(":")
    if is_path or not colon:
        return Logdir(_absolute_path_or_url(spec_entry))
    return Logdir(_absolute_path_or_url(path), name)


def _absolute_path_or_url(path: str) -> str:
    """Returns a path made absolute; a URL unchanged."""
    return path if "://" in path else os.path.abspath(os.path.expanduser(path))  # noqa: PTH100, PTH111 - TensorBoard's paths are text
