"""Find the folders that TensorBoard was started with, from `--logdir` or `--logdir_spec`."""

import os
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Logdir:
    """A folder that TensorBoard shows."""

    place: str
    """A local path, or an address such as `gs://bucket/logs`."""
    name: str = ""
    """The group of its runs; empty if the user gave none."""

    @property
    def is_remote(self) -> bool:
        return "://" in self.place

    def run(self, folder: str) -> str:
        """Returns the run of the traces in a folder below this one.

        The old layout's `plugins/profile` between a run and its recordings is not part of its name.
        """
        below = os.path.relpath(folder, self.place) if not self.is_remote else folder
        parts = [part for part in below.replace(os.sep, "/").split("/") if part not in ("", ".")]
        for at in range(len(parts) - 1):
            if parts[at : at + 2] == ["plugins", "profile"]:
                del parts[at : at + 2]
                break
        if self.name:
            parts.insert(0, self.name)
        return "/".join(parts) or self.place.rstrip("/").replace(os.sep, "/").rpartition("/")[2]


def logdirs(context: Any) -> list[Logdir]:
    """Returns the folders of a `TBContext`, any of whose fields may be missing."""
    flags = context.flags
    logdir = context.logdir or getattr(flags, "logdir", None)
    if logdir:
        return [Logdir(_absolute(logdir))]
    return [
        _parse_spec(one) for one in (getattr(flags, "logdir_spec", None) or "").split(",") if one
    ]


def _parse_spec(spec: str) -> Logdir:
    """Returns a folder of `--logdir_spec`: a path, or `name:path`.

    As TensorBoard reads it, a path may hold colons if it begins with a slash, a drive or a scheme.
    """
    scheme, is_address, _ = spec.partition("://")
    begins_as_path = (
        spec.startswith("/")
        or os.path.splitdrive(spec)[0]
        or (is_address and scheme.replace(".", "").isalnum())
    )
    name, colon, path = spec.partition(":")
    if begins_as_path or not colon:
        return Logdir(_absolute(spec))
    return Logdir(_absolute(path), name)


def _absolute(place: str) -> str:
    return place if "://" in place else os.path.abspath(os.path.expanduser(place))  # noqa: PTH100, PTH111 - TensorBoard's paths are text
