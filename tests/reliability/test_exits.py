"""Programs that end by themselves, each before, within and after a recording."""

import textwrap
from typing import TYPE_CHECKING, Final

import pytest
from tests.reliability.conftest import TRAINING, Program

if TYPE_CHECKING:
    from tests.reliability.conftest import Compare

LOOP: Final = """
for number in range(40):
    step()
    if number == END:
        print("ending", flush=True)
        end()
print(step())
"""

ENDS: Final = {
    "sys.exit()": "sys.exit()",
    "sys.exit of a status": "sys.exit(3)",
    "sys.exit of a large status": "sys.exit(259)",
    "sys.exit of a negative status": "sys.exit(-1)",
    "sys.exit of a text": "sys.exit('it is over')",
    "sys.exit of an object": "sys.exit([1, 2])",
    "sys.exit of True": "sys.exit(True)",
    "SystemExit without a code": "raise SystemExit",
    "SystemExit of another class": "raise type('Own', (SystemExit,), {})(4)",
    "an exception": "raise ValueError('own')",
    "an exception with a cause": "raise ValueError('own') from KeyError('cause')",
    "an exception in an except": (
        "try: 1 / 0\n    except ZeroDivisionError: raise OSError(5, 'own')"
    ),
    "an exception whose text fails": (
        "raise type('Bad', (Exception,), {'__str__': lambda s: 1 / 0})"
    ),
    "KeyboardInterrupt": "raise KeyboardInterrupt",
    "MemoryError": "raise MemoryError",
    "GeneratorExit": "raise GeneratorExit",
    "os._exit": "os._exit(7)",
    "os._exit in a thread": "threading.Thread(target=os._exit, args=(8,)).start(); time.sleep(60)",
    "SIGTERM to itself": "os.kill(os.getpid(), signal.SIGTERM); time.sleep(60)",
    "SIGINT to itself": "os.kill(os.getpid(), signal.SIGINT); time.sleep(60)",
    "SIGKILL to itself": "os.kill(os.getpid(), signal.SIGKILL)",
    "SIGABRT": "os.abort()",
    "SIGSEGV": "import ctypes; ctypes.string_at(0)",
    "SIGHUP to itself": "os.kill(os.getpid(), signal.SIGHUP)",
    "SIGALRM": "signal.alarm(1); time.sleep(60)",
    "SIGPIPE with its default": (
        "signal.signal(signal.SIGPIPE, signal.SIG_DFL); os.kill(os.getpid(), signal.SIGPIPE)"
    ),
    "SIGUSR1 without a handler": "os.kill(os.getpid(), signal.SIGUSR1)",
    "SIGXCPU": "os.kill(os.getpid(), signal.SIGXCPU)",
    "exec of another program": "os.execv('/bin/echo', ['echo', 'another'])",
    "exec of Python": "os.execv(sys.executable, [sys.executable, '-c', 'print(2)'])",
    "exec of what is not there": "os.execv('/nonexistent', ['x'])",
    "exec of itself": (
        "os.environ.get('AGAIN') and sys.exit(9); os.environ['AGAIN'] = '1'; "
        "os.execv(sys.executable, [sys.executable, *sys.argv])"
    ),
    "an exception in a function of atexit": (
        "import atexit; atexit.register(lambda: 1 / 0); atexit.register(print, 'late'); sys.exit(2)"
    ),
    "atexit that ends the process": "import atexit; atexit.register(os._exit, 6); sys.exit(2)",
    "atexit that trains": "import atexit; atexit.register(lambda: print(step())); sys.exit(2)",
    "a hook for exceptions": (
        "sys.excepthook = lambda kind, *rest: print('hook', kind.__name__); raise ValueError('own')"
    ),
    "a hook for exceptions that fails": (
        "sys.excepthook = lambda *rest: 1 / 0; raise ValueError('own')"
    ),
    "an exception in __del__": "Own = type('Own', (), {'__del__': lambda self: 1 / 0}); Own()",
    "an exception in a thread": (
        "thread = threading.Thread(target=lambda: 1 / 0, name='own'); thread.start(); thread.join()"
    ),
    "SystemExit in a thread": (
        "thread = threading.Thread(target=sys.exit, args=(5,)); thread.start(); thread.join()"
    ),
    "a thread that outlives the program": (
        "threading.Thread(target=lambda: (time.sleep(1), print('late'))).start(); sys.exit(2)"
    ),
    "a daemon thread that trains to the end": (
        "net2 = torch.nn.Linear(4, 4)\n"
        "    def endless():\n"
        "        while True: net2(torch.ones(2, 4)).sum().backward()\n"
        "    threading.Thread(target=endless, daemon=True).start(); time.sleep(0.2); sys.exit(2)"
    ),
    "an exception in a hook of autograd": (
        "rows = torch.ones(2, 8, requires_grad=True); rows.register_hook(lambda g: 1 / 0); "
        "net(rows).sum().backward()"
    ),
    "an exception in a hook of a module": (
        "net.register_forward_hook(lambda *rest: 1 / 0); step()"
    ),
    "an error of torch": "torch.ones(2, 3) @ torch.ones(2, 3)",
    "an exception group": "raise ExceptionGroup('own', [ValueError(1), KeyError(2)])",
    "an exception with notes": "error = ValueError('own'); error.add_note('a note'); raise error",
    "closed standard output": "sys.stdout.close(); sys.exit(2)",
    "closed standard error": "sys.stderr.close(); raise ValueError('own')",
    "descriptors 1 and 2 closed": "os.close(1); os.close(2); sys.exit(3)",
    "every descriptor closed": "os.closerange(3, 256); sys.exit(3)",
    "the folder removed": "import shutil; shutil.rmtree(os.getcwd()); sys.exit(3)",
    "another folder": (
        "os.mkdir('sub'); os.chdir('sub'); open('made', 'w').write('x'); sys.exit(3)"
    ),
    "standard output replaced": "sys.stdout = open('log', 'w'); print('x'); sys.exit(1)",
    "modules removed": "sys.modules.clear(); sys.exit(3)",
    "builtins replaced": (
        "import builtins; builtins.print = None; builtins.open = None; sys.exit(3)"
    ),
    "the clock stopped": (
        "time.time = time.perf_counter = time.monotonic = lambda: 0.0; sys.exit(3)"
    ),
}
"""What a program does at its end, in a function `end`."""


@pytest.mark.torch
@pytest.mark.sweep(2)
@pytest.mark.parametrize("number", [1, 6, 30], ids=["before", "within", "after"])
@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS.keys())
def test_a_program_ends_as_it_would_have_ended(end: str, number: int, compare: "Compare") -> None:
    """The same status, output, files and children; nothing is left in the temporary folder."""
    function = f"END = {number}\n\n\ndef end():\n    {end}\n"
    code = TRAINING + function + textwrap.dedent(LOOP)

    plain, recorded = compare(Program(code))

    assert recorded == plain
