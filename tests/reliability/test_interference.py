"""Programs that look at themselves, change Python, or use what a recorder uses."""

import textwrap
from typing import TYPE_CHECKING, Final

import pytest
from tests.reliability.conftest import TRAINING, Program

if TYPE_CHECKING:
    from tests.reliability.conftest import Compare

PROGRAMS: Final = {
    "random numbers": """
        import random; random.seed(0)
        for number in range(30): step()
        print(random.random(), torch.rand(3).tolist())
        """,
    "a state that is saved": """
        for number in range(30): step()
        torch.save({"net": net.state_dict(), "optimizer": optimizer.state_dict()}, "state.pt")
        print(sorted(torch.load("state.pt")))
        """,
    "its own profiler": """
        from torch.profiler import profile
        for number in range(4): step()
        with profile() as prof:
            for number in range(10): step()
        print(sum(event.count for event in prof.key_averages() if event.key == "aten::linear"))
        """,
    "the profiler of autograd": """
        for number in range(4): step()
        with torch.autograd.profiler.profile() as prof:
            for number in range(10): step()
        print(sum(event.count for event in prof.key_averages() if event.key == "aten::addmm"))
        """,
    "cProfile": """
        import cProfile, io, pstats
        profiler = cProfile.Profile()
        profiler.enable()
        for number in range(30): step()
        profiler.disable()
        stats = pstats.Stats(profiler).stats
        print(sum(calls for (file, *rest), (calls, *rest) in stats.items() if file == __file__))
        """,
    "a trace function": """
        calls = []
        def trace(frame, event, arg):
            if frame.f_code.co_filename == __file__: calls.append(event)
            return trace
        sys.settrace(trace)
        for number in range(12): step()
        sys.settrace(None)
        print(calls.count("call"), calls.count("return"))
        """,
    "a profile function": """
        calls = []
        def seen(frame, event, arg):
            if frame.f_code.co_filename == __file__: calls.append(event)
        sys.setprofile(seen)
        for number in range(12): step()
        sys.setprofile(None)
        print(calls.count("call"), calls.count("return"))
        """,
    "monitoring of Python": """
        if hasattr(sys, "monitoring"):
            sys.monitoring.use_tool_id(2, "own")
        for number in range(12): step()
        print("done")
        """,
    "threads that are counted": """
        for number in range(12):
            step()
            print(threading.active_count(), [thread.name for thread in threading.enumerate()])
        """,
    "modules that are looked for": """
        for number in range(30): step()
        print([name for name in ("matplotlib", "pandas", "tensorboard") if name in sys.modules])
        """,
    "its own file": """
        import inspect
        for number in range(12): step()
        print(__file__, __name__, __doc__, inspect.getsource(step)[:20])
        print(sys.argv, sys.path[0] != "")
        """,
    "what it was started with": """
        for number in range(12): step()
        print(sys.flags, sys.warnoptions, sys._xoptions, sys.orig_argv[-1], __spec__)
        """,
    "the garbage collector off": """
        import gc
        gc.disable()
        for number in range(30): step()
        print(gc.isenabled(), gc.get_threshold())
        """,
    "the garbage collector frozen": """
        import gc
        gc.collect(); gc.freeze()
        for number in range(30): step()
        gc.unfreeze(); print(gc.isenabled())
        """,
    "objects that are counted": """
        import gc
        def tensors(): return sum(isinstance(one, torch.Tensor) for one in gc.get_objects())
        for number in range(5): step()
        before = tensors()
        for number in range(30): step()
        print(tensors() - before)
        """,
    "weak references": """
        import weakref
        for number in range(12):
            rows = torch.ones(2, 8); seen = weakref.ref(rows)
            net(rows).sum().backward(); optimizer.step()
            del rows; print(seen() is None)
        """,
    "a low limit of recursion": """
        sys.setrecursionlimit(120)
        for number in range(30): step()
        print("done")
        """,
    "deep recursion": """
        def deep(left): return step() if not left else deep(left - 1)
        for number in range(12): deep(800)
        print("done")
        """,
    "a short switch interval": """
        sys.setswitchinterval(1e-6)
        for number in range(30): step()
        print(sys.getswitchinterval())
        """,
    "hooks of its own": """
        print(threading.excepthook is threading.__excepthook__)
        print(signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGHUP))
        for number in range(30): step()
        print(signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGHUP))
        """,
    "an optimizer of its own": """
        class Own(torch.optim.SGD):
            def step(self, closure=None): print("step"); return super().step(closure)
        optimizer = Own(net.parameters(), lr=0.1)
        for number in range(12): step()
        """,
    "an optimizer's methods": """
        method = torch.optim.SGD.step
        print(method.__name__, method.__module__, type(optimizer).step.__doc__ is None)
        for number in range(12): step()
        print(len(optimizer._optimizer_step_pre_hooks), len(optimizer._optimizer_step_post_hooks))
        """,
    "a pickle of its classes": """
        import pickle
        class Own: value = 3
        for number in range(12): step()
        print(pickle.loads(pickle.dumps(Own())).value)
        """,
    "a deep copy": """
        import copy
        for number in range(12): step(); copy.deepcopy(net); copy.deepcopy(optimizer)
        print(torch.equal(copy.deepcopy(net).weight, net.weight))
        """,
    "a loader with workers": """
        class Rows(torch.utils.data.Dataset):
            def __len__(self): return 32
            def __getitem__(self, index): return torch.full((8,), float(index))
        if __name__ == "__main__":
            loader = torch.utils.data.DataLoader(Rows(), batch_size=4, num_workers=2)
            for rows in loader: net(rows).sum().backward(); optimizer.step()
            print(rows[:, 0].tolist())
        """,
    "a worker that fails": """
        class Rows(torch.utils.data.Dataset):
            def __len__(self): return 32
            def __getitem__(self, index): return torch.full((8,), 1 / (17 - index))
        if __name__ == "__main__":
            loader = torch.utils.data.DataLoader(Rows(), batch_size=4, num_workers=1)
            try:
                for rows in loader: net(rows).sum().backward(); optimizer.step()
            except ZeroDivisionError: print("failed")
        """,
    "processes that are forked": """
        import multiprocessing
        def child(): print(sum(step() for number in range(12)) > 0, flush=True)
        for number in range(12): step()
        process = multiprocessing.get_context("fork").Process(target=child)
        process.start(); process.join(); print(process.exitcode)
        """,
    "processes that are spawned": """
        import multiprocessing
        def child(): print(sum(step() for number in range(12)) > 0, flush=True)
        if __name__ == "__main__":
            for number in range(12): step()
            process = multiprocessing.get_context("spawn").Process(target=child)
            process.start(); process.join(); print(process.exitcode)
        """,
    "a pool": """
        import multiprocessing
        def child(number): return number * number
        if __name__ == "__main__":
            for number in range(12): step()
            with multiprocessing.Pool(2) as pool: print(pool.map(child, range(6)))
        """,
    "a fork by hand": """
        for number in range(6): step()
        if not os.fork():
            for number in range(6): step()
            os._exit(3)
        print(os.waitstatus_to_exitcode(os.wait()[1]))
        for number in range(6): step()
        """,
    "a fork in a thread": """
        for number in range(6): step()
        def fork():
            child = os.fork()
            if not child: os._exit(4)
            print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        thread = threading.Thread(target=fork); thread.start(); thread.join()
        for number in range(6): step()
        """,
    "a subprocess": """
        import subprocess
        for number in range(6): step()
        code = "import sys; print(sys.argv); sys.exit(3)"
        print(subprocess.run([sys.executable, "-c", code], capture_output=True))
        for number in range(6): step()
        """,
    "a shell": """
        for number in range(12): step()
        print(os.system("exit 3"), os.popen("echo own").read())
        """,
    "its environment": """
        ours = [name for name in os.environ if name.startswith("SELFTIME")]
        for number in range(12): step()
        print(sorted(set(os.environ) - set(ours) - {"PYTHONPATH"}))
        """,
    "training in a thread": """
        def train():
            for number in range(30): loss = step()
            print(loss)
        thread = threading.Thread(target=train); thread.start(); thread.join()
        """,
    "training in two threads": """
        def train():
            for number in range(30): net(torch.ones(2, 8)).sum().backward()
        threads = [threading.Thread(target=train) for number in range(2)]
        [one.start() for one in threads]; [one.join() for one in threads]; print("done")
        """,
    "asyncio": """
        import asyncio
        async def train():
            for number in range(30): step(); await asyncio.sleep(0)
            return "done"
        print(asyncio.run(train()))
        """,
    "a generator": """
        def rounds():
            for number in range(30): yield step()
        print(len(list(rounds())))
        """,
    "exec of its steps": """
        exec(compile("for number in range(30): step()\\nprint('done')", "<made>", "exec"))
        """,
    "a class in the loop": """
        for number in range(12):
            class Own(torch.nn.Module):
                def forward(self, rows): return net(rows)
            Own()(torch.ones(2, 8)).sum().backward(); optimizer.step()
        print(Own.__qualname__)
        """,
    "inference mode": """
        with torch.inference_mode():
            for number in range(30): rows = net(torch.ones(2, 8))
        print(rows.requires_grad, rows.is_inference())
        """,
    "anomalies that are looked for": """
        import warnings; warnings.simplefilter("ignore")  # they tell all callers
        with torch.autograd.detect_anomaly(check_nan=True):
            for number in range(12): step()
            try: (torch.zeros(1, requires_grad=True) / 0 * 0).backward()
            except RuntimeError as error: print(error)
        """,
    "deterministic algorithms": """
        torch.use_deterministic_algorithms(True)
        for number in range(30): loss = step()
        print(loss, torch.are_deterministic_algorithms_enabled())
        """,
    "a dispatch mode": """
        from torch.utils.flop_counter import FlopCounterMode
        with FlopCounterMode(display=False) as counter:
            for number in range(12): step()
        print(counter.get_total_flops())
        """,
    "a record function": """
        for number in range(12):
            with torch.profiler.record_function("own"): step()
        print("done")
        """,
    "torch.func": """
        from torch.func import functional_call, grad
        parameters = {name: one.detach() for name, one in net.named_parameters()}
        def loss(values): return functional_call(net, values, torch.ones(2, 8)).sum()
        for number in range(12): found = grad(loss)(parameters)
        print(found["bias"].tolist())
        """,
    "torch.jit": """
        scripted = torch.jit.script(net)
        for number in range(12): scripted(torch.ones(2, 8)).sum().backward(); optimizer.step()
        print(type(scripted).__name__)
        """,
    "hooks of the default device": """
        torch.set_default_device("meta")
        for number in range(12): torch.nn.Linear(8, 8)(torch.ones(2, 8))
        print(torch.ones(1).device)
        """,
    "a default type": """
        torch.set_default_dtype(torch.float64)
        for number in range(12): torch.nn.Linear(8, 8)(torch.ones(2, 8)).sum().backward()
        print(torch.ones(1).dtype)
        """,
    "warnings that are caught": """
        import warnings
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            for number in range(12): step()
            warnings.warn("own")
        print([str(one.message) for one in caught])
        """,
    "logging": """
        import logging
        logging.basicConfig(level=logging.DEBUG, format="%(name)s %(message)s", stream=sys.stdout)
        for number in range(30): step()
        logging.getLogger("own").debug("done")
        print(logging.getLogger().handlers[0].stream is sys.stdout)
        """,
    "standard input": """
        print(sys.stdin.read())
        for number in range(12): step()
        """,
    "a limit of time for a step": """
        def late(*rest): raise TimeoutError("late")
        signal.signal(signal.SIGALRM, late)
        for number in range(12):
            signal.setitimer(signal.ITIMER_REAL, 30); step()
            signal.setitimer(signal.ITIMER_REAL, 0)
        print("done")
        """,
    "child signals": """
        seen = []
        signal.signal(signal.SIGCHLD, lambda *rest: seen.append(1))
        for number in range(12): step()
        os.spawnv(os.P_WAIT, "/bin/true", ["true"]); print(len(seen))
        """,
    "an import hook": """
        class Finder:
            def find_spec(self, name, path=None, target=None):
                if name == "own": print("looked for", name)
        sys.meta_path.insert(0, Finder())
        for number in range(12): step()
        try: import own
        except ImportError: print("none")
        """,
    "a module named like ours": """
        open("analysis.py", "w").write("value = 3"); sys.path.insert(0, os.getcwd())
        for number in range(12): step()
        import analysis; print(analysis.value)
        """,
    "files that stay open": """
        files = [open(f"{number}.txt", "w") for number in range(20)]
        for number in range(30): step(); files[number % 20].write("x")
        """,
    "descriptors that are expected": """
        for number in range(6): step()
        first = os.open("a", os.O_CREAT | os.O_WRONLY); os.close(first)
        for number in range(6): step()
        second = os.open("b", os.O_CREAT | os.O_WRONLY)
        os.write(second, b"own"); print(second >= 3)
        """,
}
"""What a program does, after it has a network and a function `step`."""


@pytest.mark.torch
@pytest.mark.sweep(2)
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_finds_what_it_would_have_found(name: str, compare: "Compare") -> None:
    program = Program(TRAINING + textwrap.dedent(PROGRAMS[name]), stdin=b"given")

    plain, recorded = compare(program)

    assert plain.status == 0, plain.stderr.decode()
    assert recorded == plain
