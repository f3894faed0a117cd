"""A real browser on what the real server answers, and small recordings of every kind to show in it.

A page that writes a warning or an error to its console, fails, or asks anything of another address
than its server's fails its test.
"""

import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from threading import Thread
from typing import Any, Final, TypeAlias
from urllib.parse import urlsplit

import polars as pl
import pytest
from playwright.sync_api import Browser, BrowserContext, Page, Request
from waitress import wasyncore

from selftime.cli import serve
from selftime.ingest.load import load
from selftime.trace import Trace
from selftime.views import VIEWS
from selftime.web import PageApp, TracesAtPaths
from selftime.web.access_guard import AccessGuard

ROOT: Final = Path(__file__).parents[2]
REAL: Final = Path(os.environ.get("SELFTIME_TRACES", ROOT.parent / "shared" / "traces"))
SCREENSHOTS: Final = ROOT / "build" / "screenshots"
PATIENCE_MS: Final = 30_000
"""For the first answer of a trace on a busy machine; nothing is measured with it."""

MAX_SERVERS: Final = 12
"""Number of servers that run at once, each with 5 threads."""

Event: TypeAlias = dict[str, Any]
Served: TypeAlias = Callable[..., str]
Opened: TypeAlias = Callable[..., Page]


@pytest.hookimpl(tryfirst=True)  # before the conftest of all tests
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.browser)
            item.add_marker(pytest.mark.xdist_group("browser"))  # one server a trace for all


@contextmanager
def serving(paths: tuple[Path, ...]) -> Iterator[str]:
    """The address of what `selftime serve` serves, by its server, for as long as the context.

    It runs in this process: to start one of its own and to import what it needs takes longer than
    most tests. That the command does so is tested in `tests/web/test_serve.py`.
    """
    listening = serve._open_listening_socket("127.0.0.1", 0)
    host = f"127.0.0.1:{listening.getsockname()[1]}"
    app = PageApp(TracesAtPaths([str(path) for path in paths]))
    server = serve._make_waitress_server(AccessGuard(app, hosts=[host]), listening, threads=4)
    running = Thread(target=server.run)
    running.start()
    try:
        yield f"http://{host}/"
    finally:
        server.trigger.pull_trigger(lambda: wasyncore.close_all(server._map))  # ends its loop
        running.join()
        server.task_dispatcher.shutdown()


@pytest.fixture(scope="session")
def served() -> Iterator[Served]:
    """Starts a server on some paths, once for the same paths, and tells its address.

    The least recently used ends where there are many: a recording with stacks in this process holds
    the frames of all its threads, and PyTorch reads no more than some hundred that never end.
    """
    known: dict[tuple[Path, ...], tuple[str, ExitStack]] = {}

    def start(*paths: Path) -> str:
        if paths not in known:
            running = ExitStack()
            known[paths] = running.enter_context(serving(paths)), running
        address, running = known[paths] = known.pop(paths)
        if len(known) > MAX_SERVERS:
            known.pop(next(iter(known)))[1].close()
        return address

    try:
        yield start
    finally:
        for _, running in known.values():
            running.close()


class Watch:
    """What a page must not do: complain, fail, or ask elsewhere."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    def follow(self, context: BrowserContext, origin: str) -> None:
        context.on("console", lambda message: self.told(message.type, message.text))
        context.on("weberror", lambda error: self.seen.append(f"failed: {error.error}"))
        context.on("request", lambda request: self.asked(request, origin))

    def told(self, kind: str, text: str) -> None:
        if kind in {"error", "warning", "assert"}:
            self.seen.append(f"{kind}: {text}")

    def asked(self, request: Request, origin: str) -> None:
        address = urlsplit(request.url)
        if address.scheme in {"about", "blob", "data"}:
            return
        if f"{address.scheme}://{address.netloc}" != origin:
            self.seen.append(f"asked {request.url}")


@pytest.fixture
def watch() -> Iterator[Watch]:
    watch = Watch()
    yield watch
    assert watch.seen == []


@pytest.fixture
def opened(browser: Browser, watch: Watch) -> Iterator[Opened]:
    """Opens an address in a window of its own; its complaints fail the test."""
    with ExitStack() as contexts:

        def open_(address: str, *, width: int = 1280, height: int = 800, **options: Any) -> Page:
            context = browser.new_context(viewport={"width": width, "height": height}, **options)
            contexts.callback(context.close)
            context.set_default_timeout(PATIENCE_MS)
            parts = urlsplit(address)
            watch.follow(context, f"{parts.scheme}://{parts.netloc}")
            page = context.new_page()
            page.goto(address)
            return page

        yield open_


SETTLED: Final = """panel => {
  const main = document.querySelector("main");
  if (main === null || main.dataset.panel !== panel) return false;
  if (main.querySelector(".waiting, [aria-busy=true]") !== null) return false;
  return main.innerText.trim() !== "" || main.querySelector("canvas, svg") !== null;
}"""


GO: Final = """hash => new Promise(done => {
  const drawn = () => requestAnimationFrame(() => requestAnimationFrame(done));
  if (location.hash === hash) return drawn();
  addEventListener("hashchange", drawn, { once: true });
  location.hash = hash;
})"""


@pytest.fixture
def settle() -> Callable[[Page, str], None]:
    """Waits until a panel shows its answer: no longer waiting, and not blank."""

    def wait(page: Page, panel: str) -> None:
        page.wait_for_function(SETTLED, arg=panel)

    return wait


@pytest.fixture
def show(settle: Callable[[Page, str], None]) -> Callable[..., None]:
    """Goes to a panel of the page that is open, as its link does."""

    def go(page: Page, panel: str, words: str = "") -> None:
        page.evaluate(GO, f"#/{panel}{words}")
        settle(page, panel)

    return go


@pytest.fixture
def panels() -> Callable[[Page], list[str]]:
    """The names of all panels, from the navigation."""

    def names(page: Page) -> list[str]:
        page.wait_for_selector("nav a")
        found: list[str] = page.eval_on_selector_all(
            "nav a", "links => links.map(link => new URL(link.href).hash.split('?')[0].slice(2))"
        )
        return found

    return names


@pytest.fixture
def screenshot(request: pytest.FixtureRequest) -> Callable[[Page, str], None]:
    """Keeps a picture of the page, to be looked at, where `--screenshots` asks for it."""
    is_asked = request.config.getoption("--screenshots")

    def keep(page: Page, name: str) -> None:
        if not is_asked:
            return
        path = SCREENSHOTS / f"{name}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        page.screenshot(path=path)

    return keep


@pytest.fixture(scope="session")
def real() -> Callable[[str], Path]:
    """The file of a real trace by its name."""

    def find(name: str) -> Path:
        path = REAL / f"{name}.json.gz"
        if not path.is_file():
            pytest.skip(f"the real trace {path} is not here; set SELFTIME_TRACES")
        return path

    return find


@pytest.fixture(scope="session")
def view() -> Callable[..., pl.DataFrame]:
    """A view's table of a recording, as Python gives it."""

    def table(path: Path, name: str, **options: Any) -> pl.DataFrame:
        trace = load(path)
        assert isinstance(trace, Trace)
        return VIEWS[name](trace, **options)

    return table


@pytest.fixture(scope="session")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Path]:
    """Small recordings of every kind by its name: a few steps, with all that can be recorded."""
    folder = tmp_path_factory.mktemp("recorded")
    nvidia, amd = gpu("cuda"), gpu("hip")
    documents = {
        "cpu": document([event for step in range(2) for event in cpu_step(step)]),
        "cuda": document([event for step in range(2) for event in nvidia(step)], "NVIDIA H100"),
        "rocm": document([e for step in range(2) for e in amd(step)], "AMD Instinct MI300X"),
        "graphs": document([e for token in range(3) for e in graph(token)], "NVIDIA H100"),
        "hostile": document(
            [e for n, name in enumerate(HOSTILE) for e in hostile(n, name)], "NVIDIA H100"
        ),
        "many": document([host("cpu_op", f"operator_{n:04}", 10.0 * n, 5.0) for n in range(2000)]),
        "bare": document([host("user_annotation", "nothing", 0.0, 10.0)]),
        "empty": document([]),
    }
    texts = {name: json.dumps(whole) for name, whole in documents.items()}
    texts["damaged"] = texts["cuda"][: len(texts["cuda"]) * 3 // 4]
    paths = {name: folder / name / f"{name}.pt.trace.json" for name in texts}
    for name, path in paths.items():
        path.parent.mkdir()
        path.write_text(texts[name], encoding="utf-8")
    return paths


@pytest.fixture(scope="session")
def address(
    served: Served, recorded: Mapping[str, Path], real: Callable[[str], Path]
) -> Callable[[str], str]:
    """Where a recording is served, by its kind, or a real trace by its name."""

    def of(name: str) -> str:
        return served(recorded[name] if name in recorded else real(name))

    return of


def document(events: list[Event], device: str | None = None) -> dict[str, Any]:
    names: list[Event] = [
        {"name": "process_name", "ph": "M", "pid": 7, "args": {"name": "python"}},
        {"name": "thread_name", "ph": "M", "pid": 7, "tid": 9, "args": {"name": "thread 9 (main)"}},
    ]
    devices = [{"id": 0, "name": device, "totalGlobalMem": 1 << 36, "numSms": 132}]
    return {
        "schemaVersion": 1,
        "deviceProperties": devices if device else [],
        "record_shapes": 1,
        "with_stack": 1,
        "profile_memory": 1,
        "traceEvents": [*names, *events] if events else [],
        "baseTimeNanoseconds": 1_712_000_000_000_000_000,
    }


def host(category: str, name: str, ts: float, dur: float, **args: Any) -> Event:
    where = {"ph": "X", "cat": category, "name": name, "pid": 7, "tid": 9}
    return {**where, "ts": ts, "dur": dur, "args": args}


def device(category: str, name: str, ts: float, dur: float, **args: Any) -> Event:
    placed = {"device": 0, "stream": 7, "grid": [4, 1, 1], "block": [128, 1, 1], **args}
    where = {"ph": "X", "cat": category, "name": name, "pid": 0, "tid": 7}
    return {**where, "ts": ts, "dur": dur, "args": placed}


def memory(ts: float, size: int, address: int, total: int, kind: int) -> Event:
    args = {
        "Bytes": size,
        "Addr": address,
        "Total Allocated": total,
        "Total Reserved": 4096,
        "Device Type": kind,
        "Device Id": 0 if kind else -1,
    }
    where = {
        "ph": "i",
        "cat": "cpu_instant_event",
        "name": "[memory]",
        "s": "t",
        "pid": 7,
        "tid": 9,
    }
    return {**where, "ts": ts, "args": args}


def cpu_step(step: int, kind: int = 0) -> list[Event]:
    at, first = 1000.0 * step, 10 * step
    shape = {"Input Dims": [[8, 3], [3, 4]], "Input type": ["float", "float"]}
    return [
        host("user_annotation", f"ProfilerStep#{step}", at, 900.0),
        host("python_function", "train.py(12): step", at + 1, 890.0, **{"Python id": first + 1}),
        host("python_function", "nn.Module: Linear_0", at + 5, 200.0, **{"Python id": first + 2}),
        host("cpu_op", "aten::linear", at + 10, 80.5, **{"External id": first + 1, **shape}),
        host("cpu_op", "aten::addmm", at + 12, 60.25, **{"External id": first + 2, **shape}),
        memory(at + 14, 2048, 4096 + first, 2048, kind),
        host("cpu_op", "AddmmBackward0", at + 300, 40.0, **{"External id": first + 3}),
        memory(at + 320, -2048, 4096 + first, 0, kind),
    ]


def gpu(api: str) -> Callable[[int], list[Event]]:
    """One step on a device; the vendors' runtimes begin the names of their calls with `api`."""

    def step(number: int) -> list[Event]:
        at, link = 1000.0 * number, 100 * number
        return [
            *cpu_step(number, kind=1),
            host("cuda_runtime", f"{api}MemcpyAsync", at + 11, 3.0, correlation=link + 1),
            device(
                "gpu_memcpy",
                "Memcpy HtoD (Pageable -> Device)",
                at + 20,
                10.0,
                correlation=link + 1,
                bytes=4096,
            ),
            host("cuda_runtime", f"{api}LaunchKernel", at + 21, 5.0, correlation=link + 2),
            device("kernel", "sgemm_128x64_nn", at + 40, 130.5, correlation=link + 2),
            host("cuda_runtime", f"{api}LaunchKernel", at + 305, 5.0, correlation=link + 3),
            device("kernel", "elementwise_kernel", at + 350, 230.5, correlation=link + 3),
            host("cuda_runtime", f"{api}DeviceSynchronize", at + 400, 200.0, correlation=link + 4),
        ]

    return step


def graph(token: int) -> list[Event]:
    """One token of a decoding: a graph is launched and runs three kernels."""
    at, link = 1000.0 * token, 100 * token
    kernels = [
        device(
            "kernel",
            f"layer_{n}_kernel",
            at + 50 + 100 * n,
            90.0,
            correlation=link + 1,
            **{"graph id": 3, "graph node id": n},
        )
        for n in range(3)
    ]
    return [
        host("user_annotation", f"execute_context_0(0)_generation_{token}(1)", at, 500.0),
        host("cpu_op", "decode", at + 5, 60.0, **{"External id": token + 1}),
        host("cuda_runtime", "cudaGraphLaunch", at + 10, 30.0, correlation=link + 1),
        *kernels,
    ]


HOSTILE: Final = (
    "<script>window.harmed = 1</script>",
    '<img src=x onerror="window.harmed = 1">',
    "\x1b[31mred\x1b[0m \x1b]0;title\x07 bell\x07",
    "void kernel<" + "at::native::Functor<float, " * 150 + ">" * 150 + "(int)",
    "right\u202eto left, zero\u200bwidth, line\u2028end",
    "javascript:window.harmed=1",
    "=HYPERLINK(1)\t\n| a `b` [c](d)",
)
"""Names as a trace from somebody else may hold them."""


def hostile(number: int, name: str) -> list[Event]:
    at, link = 1000.0 * number, 100 * number
    return [
        host("user_annotation", f"ProfilerStep#{number}", at, 900.0),
        host("user_annotation", name, at + 1, 880.0),
        host("python_function", f"{name}.py(3): {name}", at + 2, 800.0, **{"Python id": link + 1}),
        host("cpu_op", name, at + 10, 80.5, **{"External id": link + 1}),
        host("cuda_runtime", "cudaLaunchKernel", at + 20, 5.0, correlation=link + 1),
        device("kernel", name, at + 40, 300.0, correlation=link + 1),
        memory(at + 14, 2048, 4096 + number, 2048, 1),
    ]
