"""Is there a PyTorch that can record?"""

import platform
import sys
from collections.abc import Iterator, Mapping
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Final

from selftime.capture.doctor.observations import Finding, Seen, State, Subject

_OLDEST: Final = (2, 4)
"""The oldest PyTorch that selftime asks for, in its package's extra `torch`."""

_OPTIONAL: Final = ("tensorboard", "ipython", "ray")
"""Packages that selftime works with where they are, and does without."""


def check(seen: Seen) -> Iterator[Finding]:
    yield _python()
    build = seen.host.answer("build")
    if build is None:
        yield _without_torch(seen.host.why("build"))
    else:
        yield _torch(build)
        yield _kineto(build)
    yield from _shadow(seen, build)
    yield _optional()


def _python() -> Finding:
    told = f"{platform.python_implementation()} {platform.python_version()}, {sys.executable}"
    return Finding("python", Subject.pytorch, State.ok, told)


def _without_torch(why: str | None) -> Finding:
    if why is not None and why.startswith("ModuleNotFoundError: No module named 'torch'"):
        return Finding(
            "torch",
            Subject.pytorch,
            State.problem,
            "not installed for this Python",
            "install it here (`pip install torch`), or run `python -m selftime doctor` with the "
            "Python of your programs",
        )
    return Finding(
        "torch",
        Subject.pytorch,
        State.problem,
        f"cannot be imported: {why or 'it was not tried'}",
        "run `python -c 'import torch'` for the whole message; a library that is not found, or a "
        "crash, is most often cured by installing PyTorch again in a new environment",
    )


def _torch(build: Mapping[str, Any]) -> Finding:
    told = f"{build['version']}, built for {built_for(build)}"
    if build["debug"]:
        return Finding(
            "torch",
            Subject.pytorch,
            State.warning,
            f"{told}, as a debug build: its times say nothing of a release",
            "install a release of PyTorch",
        )
    if _numbers(build["version"]) < _OLDEST:
        oldest = ".".join(map(str, _OLDEST))
        return Finding(
            "torch",
            Subject.pytorch,
            State.warning,
            f"{told}, is older than {oldest}, with which selftime is tested",
            f"update to PyTorch {oldest} or newer; traces of older ones can be read",
        )
    return Finding("torch", Subject.pytorch, State.ok, told)


def built_for(build: Mapping[str, Any]) -> str:
    """What a build of PyTorch runs on beside the CPU."""
    for name, key in (("ROCm", "hip"), ("CUDA", "cuda"), ("XPU", "xpu")):
        if build[key]:
            return f"{name} {build[key]}"
    return "the CPU alone"


def _numbers(text: str) -> tuple[int, ...]:
    """The first two numbers of a version."""
    parts = text.partition("+")[0].split(".")[:2]
    return tuple(int(part) for part in parts if part.isdecimal())


def _kineto(build: Mapping[str, Any]) -> Finding:
    if build["kineto"]:
        told = f"records {', '.join(build['activities'])}"
        return Finding("kineto", Subject.pytorch, State.ok, told)
    return Finding(
        "kineto",
        Subject.pytorch,
        State.problem,
        "this PyTorch was built without its recorder, Kineto",
        "install a build with it (the official ones are), or build with USE_KINETO=1",
    )


def _shadow(seen: Seen, build: Mapping[str, Any] | None) -> Iterator[Finding]:
    """A folder named torch where programs lie is found before the installed one."""
    for name in ("torch.py", "torch/__init__.py"):
        file = seen.place.folder / name
        if file.is_file() and (build is None or str(file) != build["file"]):
            yield Finding(
                "shadow",
                Subject.pytorch,
                State.warning,
                f"`{name}` lies in this folder: programs here import it in place of PyTorch",
                "rename it, or start programs from another folder",
            )


def _optional() -> Finding:
    told = ", ".join(f"{name} {_installed(name) or 'not installed'}" for name in _OPTIONAL)
    return Finding("optional", Subject.pytorch, State.ok, f"{told}; none is needed to record")


def _installed(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
