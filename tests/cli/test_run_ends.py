"""`selftime run` of a program that ends at once: it ends as without us, and is answered for."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from tests.preloaded import Preloaded

import selftime
from selftime.ingest.ledger import read_ledger
from selftime.run import Run

PYTHONPATH = str(Path(selftime.__file__).parents[1])

TRAINING = """
import os, signal, sys, time
import torch

{before}
model = torch.nn.Linear(4, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(40):
    optimizer.zero_grad()
    model(torch.ones(2, 4)).sum().backward()
    optimizer.step()
print("trained", signal.getsignal(signal.SIGTERM) is signal.SIG_DFL, flush=True)
{after}
"""
WAIT = "print(os.getpid(), file=open('pid', 'w'), flush=True); open('ready', 'w'); time.sleep(100)"


def training(after: str, before: str = "") -> str:
    return TRAINING.format(after=after, before=before)


Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def start(tmp_path: Path, preloaded: Preloaded) -> Start:
    """Starts the text of a program under `selftime run`."""
    pytest.importorskip("torch")

    def start(program: str, *options: str) -> "subprocess.Popen[str]":
        (tmp_path / "train.py").write_text(program)
        words = ["-m", "selftime", "run", *options, "train.py"]
        return preloaded.start(words, cwd=tmp_path, env={**os.environ})  # type: ignore[return-value]  # it is like one

    return start


def wait_until_answering(folder: Path) -> None:
    """Waits until the process that prints the answer runs."""
    wait_until_running(folder, b"\0advise\0")


def wait_until_running(folder: Path, words: bytes) -> None:
    """Waits until a process with these words in its command line runs in the folder."""
    while True:
        for process in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):  # it has ended
                told = (process / "cmdline").read_bytes()
                if words in told and (process / "cwd").readlink() == folder:
                    return
        time.sleep(0.01)


def wait_until_ready(folder: Path) -> None:
    while not (folder / "ready").exists():
        time.sleep(0.02)


def wait_until_steps_are_written(folder: Path) -> None:
    while not list(folder.rglob("*.run.jsonl")) or run_of(folder).segments["kind"].count() < 40:
        time.sleep(0.02)


def run_of(folder: Path) -> Run:
    [path] = folder.rglob("*.run.jsonl")
    return read_ledger(path.read_bytes(), str(path))


@pytest.mark.torch
@pytest.mark.skipif(sys.platform != "linux", reason="programs run in this process")
def test_a_signal_while_the_answer_is_printed_leaves_the_command_that_shows_it(
    start: Start, tmp_path: Path
) -> None:
    process = start(training(""))
    wait_until_answering(tmp_path)
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate()
    assert process.returncode == -signal.SIGTERM
    assert "a signal ended the answer; to see it whole: selftime advise selftime-runs" in err


@pytest.mark.torch
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
@pytest.mark.sweep(1)
def test_a_signal_ends_the_command_and_is_told(
    start: Start, tmp_path: Path, number: signal.Signals
) -> None:
    process = start(training(WAIT), "--light")
    wait_until_steps_are_written(tmp_path)
    if number is signal.SIGKILL:  # cannot be passed on
        os.kill(int((tmp_path / "pid").read_text()), number)
    else:
        process.send_signal(number)
    stdout, stderr = process.communicate(timeout=120)
    run = run_of(tmp_path)

    assert (process.wait(), stdout) == (-number, "trained True\n")
    assert f"the program was ended by {number.name}" in stderr
    assert f"(ended by {number.name})" in " ".join(stderr.split())
    assert run.segments["kind"].count() == 40
    assert run.is_whole
    assert run.facts["status"] == f"ended by {number.name}"


def recorded(after: str) -> str:
    """A training that goes on until its trace is written."""
    text = training(after, before="from pathlib import Path")
    until = "if list(Path('selftime-runs').glob('*.gz')): break"
    return text.replace("range(40)", "range(1_000_000)").replace(
        "optimizer.step()", f"optimizer.step()\n    {until}"
    )


def is_cpu_measured(run: Run) -> bool:
    """Whether its rates are known; or that other programs took the cores, which is told."""
    return run.cpu_peaks is not None or "cpu_peaks_unknown" in run.facts


@pytest.mark.torch
@pytest.mark.skipif(sys.platform != "linux", reason="programs run in this process")
def test_the_cpu_is_measured_once_a_signal_has_ended_the_program(
    start: Start, tmp_path: Path
) -> None:
    process = start(recorded(WAIT), "--warmup", "3")
    wait_until_ready(tmp_path)
    process.send_signal(signal.SIGTERM)
    stdout, _ = process.communicate(timeout=120)

    assert (process.wait(), stdout.split()[0]) == (-signal.SIGTERM, "trained")
    assert run_of(tmp_path).facts["status"] == "ended by SIGTERM"
    assert is_cpu_measured(run_of(tmp_path))


@pytest.mark.torch
@pytest.mark.skipif(sys.platform != "linux", reason="programs run in this process")
@pytest.mark.parametrize(
    ("number", "options"), [(signal.SIGKILL, []), (signal.SIGTERM, ["-q"])], ids=["kill", "quiet"]
)
@pytest.mark.sweep(1)
def test_the_cpu_is_not_measured_where_memory_may_be_short_or_no_answer_is_wanted(
    start: Start, tmp_path: Path, number: signal.Signals, options: list[str]
) -> None:
    process = start(recorded(WAIT), "--warmup", "3", *options)
    wait_until_ready(tmp_path)
    os.kill(int((tmp_path / "pid").read_text()), number)
    process.communicate(timeout=120)

    assert process.wait() == -number
    assert list(tmp_path.rglob("*.pt.trace.json.gz"))
    assert not is_cpu_measured(run_of(tmp_path))


@pytest.mark.torch
@pytest.mark.skipif(sys.platform != "linux", reason="programs run in this process")
def test_a_second_signal_ends_the_measuring(start: Start, tmp_path: Path) -> None:
    process = start(recorded(WAIT), "--warmup", "3")
    wait_until_ready(tmp_path)
    process.send_signal(signal.SIGTERM)
    wait_until_running(tmp_path, b"selftime.capture.facts.cpu_peak_trials")
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=120)

    assert process.wait() == -signal.SIGTERM
    assert run_of(tmp_path).facts["status"] == "ended by SIGTERM"
    assert not is_cpu_measured(run_of(tmp_path))


@pytest.mark.torch
def test_a_signal_leaves_the_reason_why_fewer_steps_are_recorded(
    start: Start, tmp_path: Path
) -> None:
    process = start(training(WAIT), "--hold", "0")
    wait_until_ready(tmp_path)
    process.send_signal(signal.SIGTERM)
    stderr = process.communicate(timeout=120)[1]

    assert process.wait() == -signal.SIGTERM
    assert stderr.count("allow more with --hold") == 1
    assert stderr.count("selftime: recorded 1 step in selftime-runs/") <= 1


@pytest.mark.torch
def test_an_immediate_exit_keeps_its_status_and_is_told(start: Start, tmp_path: Path) -> None:
    process = start(training("os._exit(3)"))
    stdout, stderr = process.communicate(timeout=120)

    assert (process.wait(), stdout.split()[0]) == (3, "trained")
    assert "trace saved to selftime-runs/" in stderr
    assert "the program was ended by os._exit(3)" in stderr
    assert run_of(tmp_path).facts["status"] == "ended by os._exit(3)"


@pytest.mark.torch
def test_a_signal_within_a_recording_leaves_its_trace(start: Start, tmp_path: Path) -> None:
    waiting = f"if step == 6: {WAIT}"
    process = start(
        training("pass").replace("optimizer.step()", f"optimizer.step()\n    {waiting}")
    )
    wait_until_ready(tmp_path)
    process.send_signal(signal.SIGTERM)
    stderr = process.communicate(timeout=120)[1]

    assert process.wait() == -signal.SIGTERM
    assert "the program was ended by SIGTERM" in stderr
    assert "trace saved to selftime-runs/" in stderr
    assert is_cpu_measured(run_of(tmp_path)) == (sys.platform == "linux")


@pytest.mark.sweep
@pytest.mark.torch
def test_a_signal_that_the_program_handles_is_its_own(start: Start, tmp_path: Path) -> None:
    handler = "signal.signal(signal.SIGTERM, lambda *_: (print('handled'), sys.exit(7)))"
    process = start(training(WAIT, before=handler))
    wait_until_ready(tmp_path)
    process.send_signal(signal.SIGTERM)
    stdout, stderr = process.communicate(timeout=120)

    assert (process.wait(), stdout) == (7, "trained False\nhandled\n")
    assert "the program was" not in stderr
    assert "Run " in stderr


@pytest.mark.torch
def test_ctrl_c_ends_the_command_as_it_ends_python(start: Start, tmp_path: Path) -> None:
    process = start(training(WAIT))
    wait_until_ready(tmp_path)
    process.send_signal(signal.SIGINT)
    stderr = process.communicate(timeout=120)[1]

    assert process.wait() == -signal.SIGINT
    assert stderr.count("KeyboardInterrupt\n") == 1
    assert "selftime/" not in stderr.partition("KeyboardInterrupt\n")[0]
    assert "(ended by KeyboardInterrupt)" in " ".join(stderr.split())


@pytest.mark.torch
def test_the_program_does_not_outlive_the_command(start: Start, tmp_path: Path) -> None:
    process = start(training(WAIT))
    wait_until_ready(tmp_path)
    program = int((tmp_path / "pid").read_text())
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=120)

    while Path(f"/proc/{program}/stat").exists():
        if ") Z " in Path(f"/proc/{program}/stat").read_text():
            break
        time.sleep(0.02)


PARENT = """
import os, time
import torch.multiprocessing as mp
from pathlib import Path

def train(number):
    import torch
    model = torch.nn.Linear(4, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(40):
        optimizer.zero_grad()
        model(torch.ones(2, 4)).sum().backward()
        optimizer.step()
        if step == 3:
            Path(f"ready{number}").touch()
            while not Path("go").exists():
                time.sleep(0.02)

if __name__ == "__main__":
    children = [mp.get_context("fork").Process(target=train, args=(n,)) for n in range(3)]
    for child in children:
        child.start()
    Path("pids").write_text(" ".join(str(child.pid) for child in children))
    for child in children:
        child.join()
"""


@pytest.mark.torch
def test_a_process_that_outlives_the_program_is_told_as_alive(start: Start, tmp_path: Path) -> None:
    process = start(PARENT)
    while len(list(tmp_path.glob("ready?"))) < 3:
        time.sleep(0.02)
    process.send_signal(signal.SIGTERM)
    try:
        stderr = process.communicate(timeout=120)[1]
        children = (tmp_path / "pids").read_text().split()
        assert all(Path("/proc", child).exists() for child in children)
    finally:
        (tmp_path / "go").touch()

    assert process.wait() == -signal.SIGTERM
    sentences = [
        "selftime: the program was ended by SIGTERM",
        *(
            f"selftime: process {child} still runs; its trace is written when it ends"
            for child in children
        ),
    ]
    assert sorted(stderr.splitlines()) == sorted(sentences)
    while len(list(tmp_path.glob("selftime-runs/*.gz"))) < 3:
        assert any(Path("/proc", child).exists() for child in children)
        time.sleep(0.02)


@pytest.mark.torch
def test_processes_that_end_by_the_same_signal_are_waited_for(tmp_path: Path) -> None:
    """They end their recording, which takes them longer than the program that only waits."""
    (tmp_path / "train.py").write_text(PARENT)
    with subprocess.Popen(
        [sys.executable, "-m", "selftime", "run", "--warmup", "2", "train.py"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": PYTHONPATH},
        stderr=subprocess.PIPE,
        start_new_session=True,
        text=True,
    ) as process:
        while len(list(tmp_path.glob("ready?"))) < 3:
            time.sleep(0.02)
        os.killpg(process.pid, signal.SIGTERM)
        stderr = process.communicate(timeout=120)[1]

    assert process.returncode == -signal.SIGTERM
    assert "ended before a trace was written" not in stderr
    for child in (tmp_path / "pids").read_text().split():
        is_recorded = f"_{child}_" in stderr
        assert is_recorded or f"process {child} still runs" in stderr


def run(folder: Path, program: str, *words: str) -> "subprocess.CompletedProcess[str]":
    (folder / "program.py").write_text(program)
    return subprocess.run(  # noqa: S603 - our own command
        [sys.executable, "-m", "selftime", "run", *words],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": PYTHONPATH},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def test_a_program_without_torch_gets_an_account(tmp_path: Path) -> None:
    done = run(tmp_path, "import time\ntime.sleep(0.5)\nprint('done')\n", "program.py")
    found = run_of(tmp_path)

    assert (done.returncode, done.stdout) == (0, "done\n")
    assert "no step was recorded: the program never imported torch" in done.stderr
    assert "nothing was recorded" not in done.stderr
    assert done.stderr.count("Run ") == 1
    assert found.is_whole
    assert found.wall_ns > 500_000_000


def test_a_program_that_is_killed_at_once_is_told(tmp_path: Path) -> None:
    done = run(tmp_path, "import os\nos.kill(os.getpid(), 9)\n", "program.py")

    assert done.returncode == -signal.SIGKILL
    assert "the program was ended by SIGKILL" in done.stderr
    assert "nothing was recorded: its process left nothing before its end" in done.stderr


def test_a_command_ends_by_its_signal(tmp_path: Path) -> None:
    done = run(tmp_path, "", "-q", "sh", "-c", "kill -TERM $$")
    assert done.returncode == -signal.SIGTERM


def test_a_program_that_replaces_its_process_is_answered(tmp_path: Path) -> None:
    (tmp_path / "next.py").write_text("raise SystemExit(4)")
    replaced = "import os, sys\nos.execv(sys.executable, [sys.executable, 'next.py'])\n"
    done = run(tmp_path, replaced, "program.py")
    assert done.returncode == 4
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("end", ["sys.exit(3)", "os._exit(3)"])
@pytest.mark.sweep(1)
def test_the_status_stays_if_nobody_reads_the_answer(tmp_path: Path, end: str) -> None:
    (tmp_path / "program.py").write_text(f"import os, sys\nsys.stdin.read()\n{end}\n")
    with subprocess.Popen(
        [sys.executable, "-m", "selftime", "run", "program.py"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": PYTHONPATH},
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stderr is not None
        assert process.stdin is not None
        process.stderr.close()
        process.stdin.close()
        assert process.wait(120) == 3


COUNTING = """
import signal, time
seen = []
signal.signal(signal.SIGTERM, lambda *_: seen.append(1))
open("ready", "w").close()
while not seen:
    time.sleep(0.01)
time.sleep(0.5)
print(len(seen))
raise SystemExit(4)
"""


@pytest.mark.parametrize("send", [os.kill, os.killpg])
def test_a_signal_reaches_the_program_once(
    tmp_path: Path, send: Callable[[int, int], None]
) -> None:
    (tmp_path / "program.py").write_text(COUNTING)
    with subprocess.Popen(
        [sys.executable, "-m", "selftime", "run", "-q", "program.py"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": PYTHONPATH},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        text=True,
    ) as process:
        wait_until_ready(tmp_path)
        send(process.pid, signal.SIGTERM)
        assert (process.communicate(timeout=120)[0], process.returncode) == ("1\n", 4)
