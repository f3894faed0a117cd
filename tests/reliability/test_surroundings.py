"""Programs in odd surroundings: environments, streams, limits, folders, names."""

import os
import resource
import signal
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import pytest
from tests.reliability.conftest import TRAINING, Program

if TYPE_CHECKING:
    from tests.reliability.conftest import Compare

LOOP: Final = TRAINING + "for number in range(40):\n    loss = step()\nprint(loss)\n"


def limited(kind: int, most: int) -> Callable[[], None]:
    return lambda: resource.setrlimit(kind, (most, most))


def closed_pipe() -> int:
    reader, writer = os.pipe()
    os.close(reader)
    return writer


SURROUNDINGS: Final[dict[str, dict[str, Any]]] = {
    "no home": {"environment": {"HOME": None}},
    "a home that is not there": {"environment": {"HOME": "/nonexistent"}},
    "no environment": {"environment": dict.fromkeys(("HOME", "PATH", "LANG", "USER"))},
    "no path": {"environment": {"PATH": ""}},
    "a temporary folder that is not there": {"environment": {"TMPDIR": "/nonexistent"}},
    "a temporary folder that is a file": {"environment": {"TMPDIR": "/etc/hostname"}},
    "a cache that cannot be made": {"environment": {"SELFTIME_CACHE": "/proc/none"}},
    "the C locale": {"environment": {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}},
    "a Turkish locale": {"environment": {"LC_ALL": "tr_TR.UTF-8"}},
    "a locale that is not there": {"environment": {"LC_ALL": "xx_XX"}},
    "ASCII streams": {"environment": {"PYTHONIOENCODING": "ascii:strict"}},
    "UTF-16 streams": {"environment": {"PYTHONIOENCODING": "utf-16"}},
    "warnings that are errors": {"environment": {"PYTHONWARNINGS": "error"}},
    "a fixed hash seed": {"environment": {"PYTHONHASHSEED": "1"}},
    "optimised Python": {"environment": {"PYTHONOPTIMIZE": "2"}},
    "no bytecode": {"environment": {"PYTHONDONTWRITEBYTECODE": "1"}},
    "a safe path": {"environment": {"PYTHONSAFEPATH": "1"}},
    "no site of the user": {"environment": {"PYTHONNOUSERSITE": "1"}},
    "unbuffered streams": {"environment": {"PYTHONUNBUFFERED": "1"}},
    "development mode": {"environment": {"PYTHONDEVMODE": "1"}},
    "allocations that are traced": {"environment": {"PYTHONTRACEMALLOC": "1"}},
    "the debug allocator": {"environment": {"PYTHONMALLOC": "debug"}},
    "faulthandler": {"environment": {"PYTHONFAULTHANDLER": "1"}},
    "one thread": {"environment": {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}},
    "a terminal of one column": {"environment": {"COLUMNS": "1", "LINES": "1"}},
    "a terminal that is dumb": {"environment": {"TERM": "dumb", "NO_COLOR": "1"}},
    "colour that is forced": {"environment": {"FORCE_COLOR": "1"}},
    "a time zone": {"environment": {"TZ": "Asia/Kathmandu"}},
    "output to a full device": {"stdout": lambda: os.open("/dev/full", os.O_WRONLY)},
    "output to nothing": {"stdout": lambda: os.open(os.devnull, os.O_WRONLY)},
    "output to a closed pipe": {"stdout": closed_pipe},
    "few files": {"before": limited(resource.RLIMIT_NOFILE, 40)},
    "no core file": {"before": limited(resource.RLIMIT_CORE, 0)},
    "little memory": {"before": limited(resource.RLIMIT_AS, 6 << 30)},
    "a short processor time": {"before": limited(resource.RLIMIT_CPU, 600)},
    "nothing may be written": {"before": lambda: os.umask(0o777) and None},
    "a strict umask": {"before": lambda: os.umask(0o077) and None},
    "SIGINT that is ignored": {
        "before": lambda: signal.signal(signal.SIGINT, signal.SIG_IGN) and None
    },
    "SIGHUP that is ignored": {
        "before": lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN) and None
    },
    "SIGPIPE with its default": {
        "before": lambda: signal.signal(signal.SIGPIPE, signal.SIG_DFL) and None
    },
    "a low priority": {"before": lambda: os.nice(5) and None},
    "one processor": {"before": lambda: os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})},
    "a name with a space": {"name": "my program.py"},
    "a name that is not ASCII": {"name": "prögramm 程序.py"},
    "a name without an ending": {"name": "program"},
    "a name like an option": {"name": "./--help.py"},
    "a name like a package": {"name": "torch_like/profile.py"},
    "the name of a module of ours": {"name": "selftime_like.py"},
    "the name of a module of Python's": {"name": "sub/profile.py"},
    "words that look like options": {"words": ("--steps", "2", "-o", "x", "--", "-q", "--help")},
    "words that are not ASCII": {"words": ("é", "程", "\udcff", "")},
    "many words": {"words": ("word",) * 5_000},
}
"""What differs from the usual for a program of forty steps."""


@pytest.mark.torch
@pytest.mark.sweep(2)
@pytest.mark.parametrize("surrounding", SURROUNDINGS.values(), ids=SURROUNDINGS.keys())
def test_a_program_runs_in_odd_surroundings(
    surrounding: dict[str, Any], compare: "Compare"
) -> None:
    plain, recorded = compare(Program(LOOP + "print(sys.argv[1:])\n", **surrounding))

    assert recorded == plain


SENT: Final = (
    TRAINING
    + """
{handler}
for number in range(50_000):
    step()
    if number == {number}:
        print("ready", flush=True)
        open("ready", "w").close()
    {each}
"""
)
HANDLERS: Final = {
    "none": "",
    "one that ends": "signal.signal(getattr(signal, NAME), lambda *rest: sys.exit(5))",
    "one that raises": (
        "def handler(*rest):\n    raise RuntimeError('own')\n"
        "signal.signal(getattr(signal, NAME), handler)"
    ),
    "one that is noted": (
        "noted = []\nsignal.signal(getattr(signal, NAME), lambda *rest: noted.append(1))"
    ),
}


@pytest.mark.torch
@pytest.mark.sweep(1)
@pytest.mark.parametrize("number", [1, 6, 30], ids=["before", "within", "after"])
@pytest.mark.parametrize("handler", HANDLERS.values(), ids=HANDLERS.keys())
@pytest.mark.parametrize(
    "sent",
    [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGQUIT, signal.SIGKILL],
    ids=lambda sent: sent.name,
)
def test_a_signal_from_outside_does_what_it_would_have_done(
    sent: signal.Signals, handler: str, number: int, compare: "Compare"
) -> None:
    if sent == signal.SIGKILL and handler:
        pytest.skip("SIGKILL has no handler")
    each = "noted and sys.exit(6)" if "noted" in handler else "pass"
    code = SENT.format(handler=handler, number=number, each=each)

    plain, recorded = compare(Program(f"NAME = '{sent.name}'\n{code}", sent=sent))

    assert (recorded.status, recorded.stdout, recorded.files) == (
        plain.status,
        plain.stdout,
        plain.files,
    )
    assert recorded.stderr.splitlines()[-1:] == plain.stderr.splitlines()[-1:]
    assert recorded.left == plain.left
