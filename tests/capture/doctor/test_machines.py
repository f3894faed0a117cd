"""Machines as their files show them, written by hand in the form of real ones."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from selftime.capture.doctor import (
    DoctorFinding,
    ExaminedMachine,
    FindingState,
    MachineExamination,
    MachineObservations,
    diagnose_machine,
)
from selftime.capture.doctor.probe_process import ProbeResults

BUILD = {
    "version": "2.13.0+cpu",
    "file": "/venv/lib/python3.11/site-packages/torch/__init__.py",
    "cuda": None,
    "hip": None,
    "xpu": None,
    "debug": False,
    "kineto": True,
    "activities": ["CPU"],
}
CUDA = {**BUILD, "version": "2.13.0+cu126", "cuda": "12.6", "activities": ["CPU", "CUDA"]}
HOST: dict[str, Any] = {
    "operators": ["aten::add", "aten::mul"],
    "frames": 12,
    "lines": [5, 6],
    "expected_lines": [5, 6],
    "clock_ok": True,
    "cores": {"logical": 8, "affinity": 8, "quota": None, "load": 0.5, "effective": 8},
    "threads": 8,
}
WORKERS = {"default": "fork", "failed": {}, "ways": ["fork", "spawn"]}
DEVICES = {"kind": "cuda", "count": 1, "names": ["NVIDIA H200"], "error": None}
KERNEL = {
    "kernels": 1,
    "launches": 2,
    "linked": 1,
    "before_launch": 0,
    "clock_ok": True,
    "versions": {"cupti_version": 24},
    "libraries": ["/venv/lib/python3.11/site-packages/nvidia/cuda_cupti/lib/libcupti.so.12"],
}
LINUX = {
    "proc/sys/kernel/ostype": "Linux\n",
    "proc/sys/kernel/osrelease": "6.8.0-45-generic\n",
    "proc/version": "Linux version 6.8.0-45-generic (buildd@lcy02-amd64-115)\n",
    "proc/meminfo": "MemTotal:       65701428 kB\nMemAvailable:   60223100 kB\n",
    "proc/self/mounts": "tmpfs /dev/shm tmpfs rw,nosuid,nodev,inode64 0 0\n",
    "proc/self/status": "Name:\tpython\nCapEff:\t0000000000000000\nSeccomp:\t0\n",
    "sys/devices/system/clocksource/clocksource0/current_clocksource": "tsc\n",
    "sys/devices/system/clocksource/clocksource0/available_clocksource": "tsc hpet acpi_pm \n",
}
NVIDIA = {
    **LINUX,
    "proc/driver/nvidia/version": (
        "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  550.54.15  Release Build  "
        "(dvs-builder@U16-I3-B03-4-3)  Tue Mar  5 22:10:24 UTC 2024\n"
        "GCC version:  gcc version 12.3.0 (Ubuntu 12.3.0-1ubuntu1~22.04)\n"
    ),
    "proc/driver/nvidia/params": "ResmanDebugLevel: 4294967295\nRmProfilingAdminOnly: 1\n",
    "proc/driver/nvidia/gpus/0000:01:00.0/information": (
        "Model: \t\t NVIDIA H200\nIRQ:   \t\t 138\nGPU UUID: \t GPU-00000000\n"
    ),
    "dev/nvidia0": "",
    "dev/nvidiactl": "",
}


class Doctor:
    """Diagnoses a machine, given its files and the results of the probes."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.machine = ExaminedMachine(root / "machine", {}, root)

    def machine_of(
        self, files: Mapping[str, str], environment: Mapping[str, str] | None = None
    ) -> ExaminedMachine:
        for name, text in files.items():
            path = self.machine.root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return ExaminedMachine(self.machine.root, environment or {}, self.root)

    def __call__(
        self,
        files: Mapping[str, str],
        *,
        environment: Mapping[str, str] | None = None,
        **told: Any,
    ) -> MachineExamination:
        """`told` is the answer of each stage that ran, or a text: why it has none."""
        stages = {"build": BUILD, "host": HOST, "workers": WORKERS, **told}
        machine = self.machine_of(files, environment)
        result = ProbeResults(
            {stage: answer for stage, answer in stages.items() if isinstance(answer, dict)},
            {stage: why for stage, why in stages.items() if isinstance(why, str)},
            stderr=str(stages.pop("stderr", "")),
        )
        return diagnose_machine(MachineObservations(machine, result, result, result))


@pytest.fixture
def ask(tmp_path: Path) -> Doctor:
    return Doctor(tmp_path)


def of(found: MachineExamination, check: str) -> DoctorFinding:
    (one,) = [finding for finding in found.findings if finding.check == check]
    return one


def states(found: MachineExamination) -> dict[str, FindingState]:
    """Of every check that is not all right."""
    return {f.check: f.state for f in found.findings if f.state is not FindingState.ok}


def test_a_plain_machine_can_record(ask: Doctor) -> None:
    found = ask(LINUX)

    assert states(found) == {}
    assert found.can_record
    assert of(found, "device").seen == "none: a recording holds what runs on the CPU"
    assert [finding.cure for finding in found.findings] == [None] * len(found.findings)


def test_a_device_that_is_recorded(ask: Doctor) -> None:
    found = ask(NVIDIA, build=CUDA, devices=DEVICES, kernel=KERNEL)

    assert states(found) == {}
    assert of(found, "device").seen == "NVIDIA H200"
    assert "cupti 24" in of(found, "tracer").seen
    assert "recordings do not need them" in of(found, "permission").seen


def test_a_system_that_tells_nothing_is_unknown_and_no_problem(ask: Doctor) -> None:
    found = ask({})

    assert states(found) == dict.fromkeys(
        ("system", "clock", "shared memory", "memory"), FindingState.unknown
    )
    assert found.can_record


def test_without_torch_nothing_else_of_it_is_claimed(ask: Doctor) -> None:
    found = ask(LINUX, build="ModuleNotFoundError: No module named 'torch'", host="", workers="")

    assert not found.can_record
    assert of(found, "torch").seen == "not installed for this Python"
    checks = {finding.check for finding in found.findings}
    assert checks.isdisjoint({"kineto", "capture", "lines", "workers", "cores"})


def test_a_torch_that_cannot_be_imported_says_why(ask: Doctor) -> None:
    why = "ImportError: libcudart.so.12: cannot open shared object file"
    torch = of(ask(LINUX, build=why), "torch")

    assert torch.state is FindingState.problem
    assert "libcudart.so.12" in torch.seen


@pytest.mark.parametrize(
    ("version", "state"),
    [("2.3.1+cu121", FindingState.warning), ("2.4.0", FindingState.ok),
     ("2.10.0a0+git12", FindingState.ok), ("1.13.1", FindingState.warning),
     ("3.0.0", FindingState.ok)],
)  # fmt: skip
def test_versions_are_compared_as_numbers(ask: Doctor, version: str, state: FindingState) -> None:
    assert of(ask(LINUX, build={**BUILD, "version": version}), "torch").state is state


def test_a_torch_without_a_recorder_cannot_record(ask: Doctor) -> None:
    assert states(ask(LINUX, build={**BUILD, "kineto": False})) == {"kineto": FindingState.problem}


def test_a_debug_build_is_told(ask: Doctor) -> None:
    assert states(ask(LINUX, build={**BUILD, "debug": True})) == {"torch": FindingState.warning}


def test_a_folder_named_torch_is_told(ask: Doctor) -> None:
    (ask.root / "torch").mkdir()
    (ask.root / "torch/__init__.py").write_text("")

    assert of(ask(LINUX), "shadow").state is FindingState.warning


def test_a_crash_while_recording_is_a_problem_with_its_cause(ask: Doctor) -> None:
    capture = of(ask(LINUX, host="the process was ended by SIGSEGV"), "capture")

    assert capture.state is FindingState.problem
    assert "SIGSEGV" in capture.seen


@pytest.mark.parametrize(
    ("change", "check", "state"),
    [
        ({"operators": ["aten::add"]}, "capture", FindingState.problem),
        ({"frames": 0}, "capture", FindingState.warning),
        ({"lines": [5]}, "lines", FindingState.warning),
        ({"lines": []}, "lines", FindingState.warning),
        ({"clock_ok": False}, "host clock", FindingState.warning),
        ({"threads": 64}, "threads", FindingState.warning),
    ],
)
def test_what_a_recording_lacks(
    ask: Doctor, change: dict[str, Any], check: str, state: FindingState
) -> None:
    assert states(ask(LINUX, host={**HOST, **change})) == {check: state}


def test_workers_that_hand_nothing_over(ask: Doctor) -> None:
    failed = {**WORKERS, "failed": {"spawn": "RuntimeError: DataLoader worker exited"}}

    assert "spawn returns no data" in of(ask(LINUX, workers=failed), "workers").seen
    hung = of(ask(LINUX, workers="the process gave no answer within 60 s"), "workers")
    assert hung.state is FindingState.warning


@pytest.mark.parametrize(
    ("cores", "state", "seen"),
    [
        (
            {"effective": 0.5, "quota": 0.5, "load": 0.1},
            FindingState.ok,
            "0.5 of 8 can be used, limited by the",
        ),
        (
            {"effective": 2, "affinity": 2, "load": 7.6},
            FindingState.warning,
            "8 processes want to run",
        ),
        ({"effective": None}, FindingState.unknown, "does not report"),
    ],
)
def test_cores(ask: Doctor, cores: dict[str, Any], state: FindingState, seen: str) -> None:
    host = {**HOST, "threads": 1, "cores": {**HOST["cores"], **cores}}
    found = of(ask(LINUX, host=host), "cores")

    assert found.state is state
    assert seen in found.seen


def test_a_driver_and_a_build_for_the_cpu(ask: Doctor) -> None:
    device = of(ask(NVIDIA), "device")

    assert device.state is FindingState.problem
    assert device.seen == "NVIDIA H200 is present, but this PyTorch is built for the CPU alone"
    assert "install a PyTorch for CUDA" in (device.cure or "")


def test_a_build_for_another_vendor(ask: Doctor) -> None:
    rocm = {**BUILD, "hip": "6.2", "activities": ["CPU", "CUDA"]}

    assert of(ask(NVIDIA, build=rocm, devices={**DEVICES, "count": 0}), "device").state is (
        FindingState.problem
    )


@pytest.mark.parametrize(
    "hiding", [{"CUDA_VISIBLE_DEVICES": ""}, {"CUDA_VISIBLE_DEVICES": "-1"},
               {"NVIDIA_VISIBLE_DEVICES": "void"}],
)  # fmt: skip
def test_a_hidden_device_is_a_warning(ask: Doctor, hiding: dict[str, str]) -> None:
    none = {**DEVICES, "count": 0, "names": [], "error": "RuntimeError: No CUDA GPUs are available"}
    found = ask(NVIDIA, environment=hiding, build=CUDA, devices=none, kernel="RuntimeError: none")

    assert states(found) == {"device": FindingState.warning}
    assert next(iter(hiding)) in of(found, "device").seen


def test_an_empty_variable_of_the_container_hides_nothing(ask: Doctor) -> None:
    none = {**DEVICES, "count": 0, "names": [], "error": "RuntimeError: No CUDA GPUs are available"}
    environment = {"NVIDIA_VISIBLE_DEVICES": ""}
    found = ask(NVIDIA, environment=environment, build=CUDA, devices=none, kernel="")

    assert states(found) == {"device": FindingState.problem}


@pytest.mark.parametrize(
    ("error", "cure"),
    [
        ("RuntimeError: The NVIDIA driver on your system is too old (found version 11040)",
         "update the driver"),
        ("RuntimeError: Error 802: system not yet initialized", "nvidia-fabricmanager"),
        ("RuntimeError: Error 804: forward compatibility was attempted on non supported HW",
         "older container"),
        ("RuntimeError: something new", "nvidia-smi"),
    ],
)  # fmt: skip
def test_why_a_device_cannot_be_used(ask: Doctor, error: str, cure: str) -> None:
    none = {**DEVICES, "count": 0, "names": [], "error": error}
    device = of(ask(NVIDIA, build=CUDA, devices=none, kernel=""), "device")

    assert device.state is FindingState.problem
    assert error in device.seen
    assert cure in (device.cure or "")


def test_a_driver_that_hangs(ask: Doctor) -> None:
    hung = "the process gave no answer within 60 s"
    found = ask(NVIDIA, build=CUDA, devices=hung)

    assert of(found, "device").state is FindingState.problem
    assert hung in of(found, "device").seen


def test_hardware_without_a_driver(ask: Doctor) -> None:
    bus = {
        "sys/bus/pci/devices/0000:01:00.0/vendor": "0x10de\n",
        "sys/bus/pci/devices/0000:01:00.0/class": "0x030200\n",
        "sys/bus/pci/devices/0000:02:00.0/vendor": "0x8086\n",
        "sys/bus/pci/devices/0000:02:00.0/class": "0x030000\n",
    }
    none = {**DEVICES, "count": 0, "names": [], "error": "no driver"}
    found = of(ask({**LINUX, **bus}, build=CUDA, devices=none, kernel=""), "device")

    assert found.state is FindingState.problem
    assert "its driver is not loaded" in found.seen


def test_a_bridge_of_the_vendor_is_no_device(ask: Doctor) -> None:
    bus = {
        "sys/bus/pci/devices/0000:01:00.1/vendor": "0x10de\n",
        "sys/bus/pci/devices/0000:01:00.1/class": "0x040300\n",  # the sound of a graphics card
    }
    assert states(ask({**LINUX, **bus})) == {}


AMD = {
    **LINUX,
    "sys/class/kfd/kfd/topology/nodes/0/gpu_id": "0\n",
    "sys/class/kfd/kfd/topology/nodes/1/gpu_id": "51110\n",
    "sys/module/amdgpu/version": "6.8.5\n",
}


def test_a_device_of_amd(ask: Doctor) -> None:
    rocm = {**BUILD, "hip": "6.2.41133", "activities": ["CPU", "CUDA"]}
    devices = {**DEVICES, "names": ["AMD Instinct MI300X"] * 8, "count": 8}
    libraries = ["/venv/lib/python3.11/site-packages/torch/lib/libroctracer64.so"]
    kernel = {**KERNEL, "libraries": libraries, "versions": {"roctracer_version": 4.1}}
    found = ask(AMD, build=rocm, devices=devices, kernel=kernel)

    assert states(found) == {}
    assert of(found, "device").seen == "8 x AMD Instinct MI300X"
    assert of(found, "tracer").seen.endswith("libroctracer64.so, roctracer 4.1")


def test_amd_and_a_build_for_the_cpu_is_a_warning(ask: Doctor) -> None:
    assert states(ask(AMD)) == {"device": FindingState.warning}


@pytest.mark.skipif(os.getuid() == 0, reason="root may open every file")
def test_a_device_that_the_user_may_not_open(ask: Doctor) -> None:
    rocm = {**BUILD, "hip": "6.2.41133", "activities": ["CPU", "CUDA"]}
    none = {**DEVICES, "count": 0, "names": [], "error": "RuntimeError: No HIP GPUs are available"}
    files = {**AMD, "dev/kfd": ""}
    machine = ask.machine_of(files)
    (machine.root / "dev/kfd").chmod(0)
    machine.root.joinpath("sys/class/kfd/kfd/topology/nodes/0/gpu_id").unlink()
    device = of(ask({}, build=rocm, devices=none, kernel=""), "device")

    assert "add them to the group" in (device.cure or "")


def test_a_processor_in_the_list_of_amd_is_no_device(ask: Doctor) -> None:
    assert states(ask({**LINUX, "sys/class/kfd/kfd/topology/nodes/0/gpu_id": "0\n"})) == {}


def test_no_kernel_and_a_driver_that_restricts(ask: Doctor) -> None:
    kernel = {**KERNEL, "kernels": 0, "linked": 0}
    found = ask(
        NVIDIA,
        build=CUDA,
        devices=DEVICES,
        kernel=kernel,
        stderr="function cbapi_->status() failed with CUPTI_ERROR_INSUFFICIENT_PRIVILEGES (35)",
    )

    assert states(found) == {"kernel": FindingState.problem, "permission": FindingState.problem}
    assert "NVreg_RestrictProfilingToAdminUsers=0" in (of(found, "kernel").cure or "")
    assert not found.can_record


def test_an_administrator_is_not_restricted(ask: Doctor) -> None:
    status = {"proc/self/status": "Name:\tpython\nCapEff:\t000001ffffffffff\n"}
    kernel = {**KERNEL, "kernels": 0, "linked": 0}
    found = ask({**NVIDIA, **status}, build=CUDA, devices=DEVICES, kernel=kernel)

    assert states(found) == {"kernel": FindingState.problem}


def test_two_profilers_of_a_device(ask: Doctor) -> None:
    kernel = {**KERNEL, "kernels": 0, "linked": 0}
    found = ask(
        NVIDIA,
        environment={"CUDA_INJECTION64_PATH": "/nsight/libToolsInjection64.so"},
        build=CUDA,
        devices=DEVICES,
        kernel=kernel,
        stderr="CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED (39)",
    )

    assert "without nsys" in (of(found, "kernel").cure or "")
    assert "CUDA_INJECTION64_PATH" in of(found, "other profilers").seen


@pytest.mark.parametrize(
    ("change", "check"),
    [
        ({"before_launch": 1}, "device clock"),
        ({"clock_ok": False}, "device clock"),
        ({"linked": 0}, "kernel"),
        ({"libraries": ["/cuda/lib64/libcupti.so.11", "/venv/libcupti.so.12"]}, "tracer"),
        ({"libraries": ["/cuda/lib64/libcupti.so.11"]}, "tracer"),
    ],
)
def test_what_a_recorded_kernel_lacks(ask: Doctor, change: dict[str, Any], check: str) -> None:
    found = ask(NVIDIA, build=CUDA, devices=DEVICES, kernel={**KERNEL, **change})

    assert states(found) == {check: FindingState.warning}


def test_a_tracer_that_was_not_seen_is_unknown(ask: Doctor) -> None:
    kernel = {**KERNEL, "libraries": []}

    assert states(ask(NVIDIA, build=CUDA, devices=DEVICES, kernel=kernel)) == {
        "tracer": FindingState.unknown
    }


def test_a_name_by_years_is_of_any_version(ask: Doctor) -> None:
    kernel = {**KERNEL, "libraries": ["/cuda/extras/CUPTI/lib64/libcupti.so.2024.3.2"]}

    assert states(ask(NVIDIA, build=CUDA, devices=DEVICES, kernel=kernel)) == {}


def test_a_build_without_the_devices_tracer(ask: Doctor) -> None:
    found = ask(NVIDIA, build={**CUDA, "activities": ["CPU"]}, devices=DEVICES, kernel=KERNEL)

    assert states(found) == {"kernel": FindingState.problem}
    assert "built without the tracer of CUDA" in of(found, "kernel").seen


def test_a_capture_that_hangs(ask: Doctor) -> None:
    hung = "the process gave no answer within 60 s"
    found = ask(NVIDIA, build=CUDA, devices=DEVICES, kernel=hung)

    assert states(found) == {"kernel": FindingState.problem}
    assert hung in of(found, "kernel").seen


def test_a_foreign_cupti_on_the_path(ask: Doctor) -> None:
    ask.machine_of({"cuda-11/lib64/libcupti.so.11.8": ""})
    environment = {"LD_LIBRARY_PATH": "/nowhere:/cuda-11/lib64"}
    found = ask(NVIDIA, environment=environment, build=CUDA, devices=DEVICES, kernel=KERNEL)

    assert states(found) == {"cupti": FindingState.warning}


def test_windows_below(ask: Doctor) -> None:
    files = {
        **LINUX,
        "proc/version": "Linux version 5.15.90.1-microsoft-standard-WSL2 (oe-user@oe-host)\n",
        "dev/dxg": "",
        "usr/lib/wsl/lib/libcuda.so.1": "",
    }
    found = ask(files, build=CUDA, devices=DEVICES, kernel=KERNEL)

    assert states(found) == {"system": FindingState.warning}
    assert of(ask(files), "device").state is FindingState.problem


@pytest.mark.parametrize(
    ("files", "environment", "kind"),
    [
        ({".dockerenv": ""}, {}, "docker"),
        ({"run/.containerenv": 'engine="podman-4.9.3"\n'}, {}, "podman"),
        ({"proc/1/cgroup": "0::/kubepods.slice/kubepods-pod1.slice/cri-containerd-1.scope\n"}, {},
         "kubernetes"),
        ({"proc/1/cgroup": "12:cpu,cpuacct:/docker/0a1b\n"}, {}, "docker"),
        ({"run/systemd/container": "lxc\n"}, {}, "lxc"),
        ({}, {"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, "kubernetes"),
    ],
)  # fmt: skip
def test_containers(
    ask: Doctor, files: dict[str, str], environment: dict[str, str], kind: str
) -> None:
    system = of(ask({**LINUX, **files}, environment=environment), "system")

    assert system.seen == f"Linux 6.8.0-45-generic in a container ({kind})"


def test_little_shared_memory(ask: Doctor) -> None:
    mounts = {
        "proc/self/mounts": "shm /dev/shm tmpfs rw,nosuid,nodev,noexec,relatime,size=65536k 0 0\n"
    }
    shared = of(ask({**LINUX, **mounts}), "shared memory")

    assert shared.state is FindingState.warning
    assert shared.seen.startswith("64.0 MiB")
    assert "--shm-size" in (shared.cure or "")


@pytest.mark.parametrize(
    "files",
    [
        {"sys/fs/cgroup/memory.max": "268435456\n", "sys/fs/cgroup/memory.current": "1000\n"},
        {
            "sys/fs/cgroup/memory/memory.limit_in_bytes": "268435456\n",
            "sys/fs/cgroup/memory/memory.usage_in_bytes": "1000\n",
        },
        {"proc/meminfo": "MemTotal:  1000000 kB\nMemAvailable:   262144 kB\n"},
    ],
)
def test_little_memory(ask: Doctor, files: dict[str, str]) -> None:
    assert of(ask({**LINUX, **files}), "memory").state is FindingState.warning


def test_no_limit_of_memory(ask: Doctor) -> None:
    files = {"sys/fs/cgroup/memory.max": "max\n", "sys/fs/cgroup/memory.current": "1000\n"}

    assert states(ask({**LINUX, **files})) == {}


@pytest.mark.parametrize(
    ("available", "cure"), [("tsc hpet acpi_pm", "echo tsc"), ("hpet acpi_pm", "tsc=reliable")]
)
def test_a_slow_clock(ask: Doctor, available: str, cure: str) -> None:
    folder = "sys/devices/system/clocksource/clocksource0"
    files = {
        f"{folder}/current_clocksource": "hpet\n",
        f"{folder}/available_clocksource": f"{available} \n",
    }
    clock = of(ask({**LINUX, **files}), "clock")

    assert clock.state is FindingState.warning
    assert cure in (clock.cure or "")


def test_services_beside_are_told_and_no_harm(ask: Doctor) -> None:
    files = {"proc/812/comm": "nv-hostengine\n", "proc/813/comm": "bash\n"}
    rivals = of(ask({**LINUX, **files}), "other profilers")

    assert rivals.state is FindingState.ok
    assert "nv-hostengine runs: DCGM" in rivals.seen


def test_a_daemon_that_may_record(ask: Doctor) -> None:
    found = ask(LINUX, environment={"KINETO_USE_DAEMON": "1"})

    assert states(found) == {"other profilers": FindingState.warning}
