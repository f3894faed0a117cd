"""Checks that the installed PyTorch supports recording: its version, build and extra packages."""

import platform
import sys
from collections.abc import Iterator, Mapping
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Final

from selftime.capture.doctor.observations import (
    DoctorFinding,
    FindingState,
    FindingSubject,
    MachineObservations,
)

_OLDEST_TESTED_TORCH_VERSION: Final = (2, 4)
"""Oldest version of PyTorch that selftime's extra `torch` requires."""

_TESTED_TORCH_VERSIONS: Final = ((2, 13), (2, 14))
"""Versions of PyTorch with which recording and tables were tested, by `make releases`."""

_NAMES_OF_OPTIONAL_PACKAGES: Final = ("tensorboard", "ipython", "ray")
"""Optional packages that selftime uses if they are installed."""


def check_pytorch(observations: MachineObservations) -> Iterator[DoctorFinding]:
    yield _python_version_finding()
    build = observations.host.answer("build")
    if build is None:
        yield _missing_torch_finding(observations.host.error("build"))
    else:
        yield _torch_version_finding(build)
        yield _kineto_finding(build)
    yield from _shadowing_torch_findings(observations, build)
    yield _optional_packages_finding()


def _python_version_finding() -> DoctorFinding:
    seen = f"{platform.python_implementation()} {platform.python_version()}, {sys.executable}"
    return DoctorFinding("python", FindingSubject.pytorch, FindingState.ok, seen)


def _missing_torch_finding(why: str | None) -> DoctorFinding:
    if why is not None and why.startswith("ModuleNotFoundError: No module named 'torch'"):
        return DoctorFinding(
            "torch",
            FindingSubject.pytorch,
            FindingState.problem,
            "not installed for this Python",
            "install it here (`pip install torch`), or run `python -m selftime doctor` with the "
            "Python of your programs",
        )
    return DoctorFinding(
        "torch",
        FindingSubject.pytorch,
        FindingState.problem,
        f"cannot be imported: {why or 'it was not tested'}",
        "run `python -c 'import torch'` for the whole message; if a library is not found or Python "
        "crashes, install PyTorch again in a new environment",
    )


def _torch_version_finding(build: Mapping[str, Any]) -> DoctorFinding:
    seen = f"{build['version']}, built for {platform_of_build(build)}"
    if build["debug"]:
        return DoctorFinding(
            "torch",
            FindingSubject.pytorch,
            FindingState.warning,
            f"{seen}, is a debug build: its times differ from those of a release",
            "install a release of PyTorch",
        )
    if _major_and_minor_version(build["version"]) < _OLDEST_TESTED_TORCH_VERSION:
        oldest = ".".join(map(str, _OLDEST_TESTED_TORCH_VERSION))
        return DoctorFinding(
            "torch",
            FindingSubject.pytorch,
            FindingState.warning,
            f"{seen}, is older than {oldest}, with which selftime is tested",
            f"update to PyTorch {oldest} or newer; traces of older ones can be read",
        )
    if _major_and_minor_version(build["version"]) not in _TESTED_TORCH_VERSIONS:
        tested = " and ".join(".".join(map(str, one)) for one in _TESTED_TORCH_VERSIONS)
        seen += f"; selftime is tested with {tested}"
    return DoctorFinding("torch", FindingSubject.pytorch, FindingState.ok, seen)


def platform_of_build(build: Mapping[str, Any]) -> str:
    """Returns the platform for which PyTorch was built, such as `CUDA 12.4`, as text."""
    for name, key in (("ROCm", "hip"), ("CUDA", "cuda"), ("XPU", "xpu")):
        if build[key]:
            return f"{name} {build[key]}"
    return "the CPU alone"


def _major_and_minor_version(text: str) -> tuple[int, ...]:
    """Returns the first two numbers of a version, such as (2, 13)."""
    parts = text.partition("+")[0].split(".")[:2]
    return tuple(int(part) for part in parts if part.isdecimal())


def _kineto_finding(build: Mapping[str, Any]) -> DoctorFinding:
    if build["kineto"]:
        seen = f"records {', '.join(build['activities'])}"
        return DoctorFinding("kineto", FindingSubject.pytorch, FindingState.ok, seen)
    return DoctorFinding(
        "kineto",
        FindingSubject.pytorch,
        FindingState.problem,
        "this PyTorch was built without its recorder, Kineto",
        "install a build with it (the official ones are), or build with USE_KINETO=1",
    )


def _shadowing_torch_findings(
    observations: MachineObservations, build: Mapping[str, Any] | None
) -> Iterator[DoctorFinding]:
    """Yields a warning if a file or folder `torch` in the working folder shadows PyTorch."""
    for name in ("torch.py", "torch/__init__.py"):
        file = observations.machine.working_folder / name
        if file.is_file() and (build is None or str(file) != build["file"]):
            yield DoctorFinding(
                "shadow",
                FindingSubject.pytorch,
                FindingState.warning,
                f"`{name}` is in this folder: programs here import it instead of PyTorch",
                "rename it, or start programs from another folder",
            )


def _optional_packages_finding() -> DoctorFinding:
    seen = ", ".join(
        f"{name} {_installed_version(name) or 'not installed'}"
        for name in _NAMES_OF_OPTIONAL_PACKAGES
    )
    return DoctorFinding(
        "optional", FindingSubject.pytorch, FindingState.ok, f"{seen}; none is needed to record"
    )


def _installed_version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
