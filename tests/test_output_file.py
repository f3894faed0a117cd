"""What a user names for output is written, and what it is stays what it is."""

import json
import os
import resource
import signal
import socket
import stat
import struct
import subprocess
import sys
import tempfile
import textwrap
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Final, TypeAlias

import pytest

from selftime import output_file
from selftime.capture.trace_file import trace_files
from selftime.cli import output_writing
from selftime.errors import SelftimeError
from selftime.reports import trace_file
from selftime.reports.export import export
from selftime.trace import Trace

pytestmark = pytest.mark.skipif(os.name == "nt", reason="the files of POSIX")

Write: TypeAlias = Callable[[Path, int], None]
"""Writes about so many bytes to a path, always the same."""

IS_ROOT: Final = os.name != "nt" and os.geteuid() == 0
OTHER_USER: Final = 65534
SMALL: Final = 100
LARGE: Final = 300_000
"""More than a pipe or a buffer holds."""


def page(path: Path, size: int) -> None:
    output_writing.write_output("x" * size, to=path)


def rewritten_trace(path: Path, size: int) -> None:
    with trace_file.open_file_writer(path, "none.json") as put:
        for _ in range(10):
            put(b"x" * (size // 10))


def recording(path: Path, size: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        body = Path(folder, "body.json")
        body.write_text(json.dumps({"traceEvents": []}))
        trace_files.write_trace_with_facts(body, path, {"a": "x" * size})


def tables(path: Path, size: int) -> None:
    """The path is that of the listing, `tables.json`, which is one of the folder's files."""
    export(Trace(metadata={"x": "x" * size}), path.parent, to="csv", views=("health",))


WRITERS: Final = (page, rewritten_trace, recording, tables)


@pytest.fixture(params=WRITERS, ids=lambda function: function.__name__)
def write(request: pytest.FixtureRequest) -> Write:
    chosen: Write = request.param
    return chosen


@pytest.fixture
def output(tmp_path: Path) -> Path:
    """The path that is written to, in a folder with nothing else."""
    (tmp_path / "folder").mkdir()
    return tmp_path / "folder" / "tables.json"


def plain(write: Write, size: int) -> bytes:
    """What comes into a file that was not there."""
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder, "tables.json"), size)
        return Path(folder, "tables.json").read_bytes()


def left_in(folder: Path) -> list[str]:
    """What lies in the folder besides the tables that are written together with the listing."""
    return sorted(path.name for path in folder.iterdir() if path.suffix != ".csv")


@contextmanager
def receiving(read: Callable[[], bytes]) -> Iterator[list[bytes]]:
    """Read beside what goes on, until the end."""
    got: list[bytes] = []
    thread = threading.Thread(target=lambda: got.append(read()), daemon=True)
    thread.start()
    yield got
    thread.join(60)
    assert not thread.is_alive(), "nothing was written to what is read"


def read_all(number: int) -> bytes:
    with open(number, "rb", closefd=False) as file:
        return file.read()


@contextmanager
def as_somebody_else() -> Iterator[None]:
    """As a user with few rights; whoever runs the tests as one is one already."""
    if not IS_ROOT:
        yield
        return
    os.seteuid(OTHER_USER)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that every user may look into, which those of pytest are not."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)
        Path(name).chmod(0o755)


@pytest.fixture
def locked(open_folder: Path) -> Path:
    """A file that may be written in a folder that may not."""
    file = open_folder / "tables.json"
    file.write_text("old")
    file.chmod(0o666)
    open_folder.chmod(0o555)
    return file


@contextmanager
def files_up_to(size: int) -> Iterator[None]:
    """No file may become larger: what a full disk does, too."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_pipe_gets_the_content_and_stays(write: Write, output: Path) -> None:
    os.mkfifo(output)
    with receiving(output.read_bytes) as got:
        write(output, LARGE)
        assert output.is_fifo()
    assert got == [plain(write, LARGE)]
    assert left_in(output.parent) == ["tables.json"]


def test_a_socket_gets_the_content_and_stays(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # addresses of sockets are short
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("tables.json")
        listening.listen()
        listening.settimeout(20)

        def read() -> bytes:
            connection, _ = listening.accept()
            with connection, connection.makefile("rb") as file:
                return file.read()

        with receiving(read) as got:
            write(Path("tables.json"), LARGE)
        assert got == [plain(write, LARGE)]
    assert Path("tables.json").is_socket()


def test_a_terminal_gets_the_content_and_stays(write: Write, output: Path) -> None:
    master, terminal = os.openpty()
    try:
        output.symlink_to(os.ttyname(terminal))
        write(output, SMALL)
        got = os.read(master, 4096)
        assert output.is_symlink()
    finally:
        os.close(master)
        os.close(terminal)
    assert len(got) >= SMALL // 4
    assert plain(write, SMALL).replace(b"\n", b"\r\n").startswith(got)


@pytest.mark.parametrize("way", ["itself", "link"])
def test_a_device_stays_a_device(way: str, write: Write, output: Path, tmp_path: Path) -> None:
    device = output if way == "itself" else tmp_path / "null"
    try:
        os.mknod(device, 0o666 | stat.S_IFCHR, os.makedev(1, 3))  # swallows what it gets
    except PermissionError:
        pytest.skip("devices can be made by root alone")
    if way == "link":
        output.symlink_to(device)
    write(output, LARGE)
    assert device.is_char_device()
    assert device.stat().st_rdev == os.makedev(1, 3)
    assert output.is_symlink() is (way == "link")
    assert left_in(output.parent) == ["tables.json"]


def test_a_device_that_takes_nothing_is_refused_and_stays(write: Write, output: Path) -> None:
    try:
        os.mknod(output, 0o666 | stat.S_IFBLK, os.makedev(240, 0))  # that nothing drives
    except PermissionError:
        pytest.skip("devices can be made by root alone")
    with pytest.raises(SelftimeError, match="cannot be written: No such device"):
        write(output, SMALL)
    assert output.is_block_device()


@pytest.mark.parametrize("ways", ["/dev/fd/{}", "/proc/self/fd/{}", "link"])
def test_a_descriptor_is_written_to(ways: str, write: Write, output: Path) -> None:
    ending, beginning = os.pipe()
    if write is tables or ways == "link":
        output.symlink_to(f"/dev/fd/{beginning}")
        path = output
    else:
        path = Path(ways.format(beginning))
    with receiving(lambda: read_all(ending)) as got:
        try:
            write(path, LARGE)
        finally:
            os.close(beginning)
    os.close(ending)
    assert got == [plain(write, LARGE)]


def test_what_a_descriptor_wrote_before_and_writes_after_stays(write: Write, output: Path) -> None:
    behind = output.with_name("behind")
    with behind.open("wb", buffering=0) as file:
        output.symlink_to(f"/proc/self/fd/{file.fileno()}")
        number = behind.stat().st_ino
        file.write(b"before ")
        write(output, SMALL)
        file.write(b" after")
    assert behind.read_bytes() == b"before " + plain(write, SMALL) + b" after"
    assert behind.stat().st_ino == number


def test_a_descriptor_that_is_not_open_is_refused() -> None:
    ending, beginning = os.pipe()
    os.close(ending)
    os.close(beginning)
    with pytest.raises(SelftimeError, match="cannot be written: Bad file descriptor"):
        page(Path(f"/dev/fd/{beginning}"), SMALL)


def test_a_descriptor_of_another_process_is_written_to(output: Path) -> None:
    if not Path("/proc/self/fd").is_dir():
        pytest.skip("processes are files on Linux alone")
    behind = output.with_name("behind")
    behind.write_text("old")
    number = behind.stat().st_ino
    waiting = [sys.executable, "-c", "print('up', flush=True); input()"]
    with (
        behind.open() as file,
        subprocess.Popen(  # noqa: S603 - our own line
            waiting, stdin=subprocess.PIPE, stdout=subprocess.PIPE, pass_fds=[file.fileno()]
        ) as running,
    ):
        assert running.stdout is not None
        running.stdout.readline()
        page(Path(f"/proc/{running.pid}/fd/{file.fileno()}"), SMALL)
        running.communicate(b"\n")
    assert behind.read_text() == "x" * SMALL
    assert behind.stat().st_ino == number


@pytest.mark.parametrize("target", ["old", "new"])
@pytest.mark.parametrize("links", [1, 2])
def test_a_link_stays_a_link(target: str, links: int, write: Write, output: Path) -> None:
    elsewhere = output.parent.with_name("elsewhere")
    elsewhere.mkdir()
    real = elsewhere / "real"
    if target == "old":
        real.write_text("old")
    if links == 1:
        output.symlink_to("../elsewhere/real")
    else:
        output.symlink_to(elsewhere / "second")
        (elsewhere / "second").symlink_to("real")
    write(output, SMALL)
    assert output.is_symlink()
    assert real.read_bytes() == plain(write, SMALL)
    assert not real.is_symlink()
    assert left_in(elsewhere) == ["real", "second"][:links]
    assert left_in(output.parent) == ["tables.json"]


def test_links_in_a_ring_are_refused(write: Write, output: Path) -> None:
    output.symlink_to(output.with_name("second"))
    output.with_name("second").symlink_to(output)
    with pytest.raises(SelftimeError, match="cannot be written: Too many levels of symbolic links"):
        write(output, SMALL)
    assert left_in(output.parent) == ["second", "tables.json"]


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o666, 0o755])
def test_the_mode_of_a_file_stays(mode: int, write: Write, output: Path) -> None:
    output.write_text("old")
    output.chmod(mode)
    number = output.stat().st_ino
    write(output, SMALL)
    assert output.read_bytes() == plain(write, SMALL)
    assert stat.S_IMODE(output.stat().st_mode) == mode
    assert output.stat().st_ino != number, "it is replaced, not written over"


def test_content_that_was_replaced_runs_as_nobody_else(output: Path) -> None:
    output.write_text("old")
    output.chmod(0o4755)
    page(output, SMALL)
    assert stat.S_IMODE(output.stat().st_mode) == 0o755


@pytest.mark.skipif(not IS_ROOT, reason="only root can give")
def test_the_owner_of_a_file_stays(write: Write, output: Path) -> None:
    output.write_text("old")
    os.chown(output, OTHER_USER, OTHER_USER - 1)
    write(output, SMALL)
    assert output.read_bytes() == plain(write, SMALL)
    assert (output.stat().st_uid, output.stat().st_gid) == (OTHER_USER, OTHER_USER - 1)


def test_attributes_and_rights_of_single_users_stay(write: Write, output: Path) -> None:
    """Without its list a file with rights of single users would be open to its whole group."""
    output.write_text("old")
    entries = [(1, 6, -1), (2, 6, OTHER_USER), (4, 0, -1), (16, 6, -1), (32, 0, -1)]
    rights = struct.pack("<I", 2) + b"".join(struct.pack("<HHi", *entry) for entry in entries)
    try:
        os.setxattr(output, "user.origin", b"ours")
        os.setxattr(output, "system.posix_acl_access", rights)
    except (AttributeError, OSError):
        pytest.skip("the file system of the temporary folder has no attributes")
    write(output, SMALL)
    assert output.read_bytes() == plain(write, SMALL)
    assert os.getxattr(output, "user.origin") == b"ours"
    assert os.getxattr(output, "system.posix_acl_access") == rights


def test_rights_that_a_folder_hands_down_do_not_widen_those_of_a_file(output: Path) -> None:
    output.write_text("old")
    output.chmod(0o640)
    entries = [(1, 7, -1), (2, 6, OTHER_USER), (4, 5, -1), (16, 7, -1), (32, 5, -1)]
    rights = struct.pack("<I", 2) + b"".join(struct.pack("<HHi", *entry) for entry in entries)
    try:
        os.setxattr(output.parent, "system.posix_acl_default", rights)
    except (AttributeError, OSError):
        pytest.skip("the file system of the temporary folder has no attributes")
    page(output, SMALL)
    assert "system.posix_acl_access" not in os.listxattr(output)
    assert stat.S_IMODE(output.stat().st_mode) == 0o640


@pytest.mark.parametrize("mask", [0o022, 0o027, 0o077])
@pytest.mark.parametrize("unnamed", [True, False])
def test_a_new_file_has_the_mode_of_the_umask(
    mask: int, unnamed: bool, write: Write, output: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not unnamed:
        monkeypatch.delattr(os, "O_TMPFILE", raising=False)
    before = os.umask(mask)
    try:
        write(output, SMALL)
        assert os.umask(mask) == mask, "it is the whole process's"
    finally:
        os.umask(before)
    assert stat.S_IMODE(output.stat().st_mode) == 0o666 & ~mask


def test_another_hard_link_keeps_what_it_has(write: Write, output: Path, tmp_path: Path) -> None:
    """Backups and stores that hold equal files once are made of them."""
    output.write_text("old")
    (tmp_path / "backup").hardlink_to(output)
    write(output, SMALL)
    assert (tmp_path / "backup").read_text() == "old"
    assert output.read_bytes() == plain(write, SMALL)


@pytest.mark.parametrize("write", [page, rewritten_trace, recording], indirect=True)
@pytest.mark.parametrize("size", [1, LARGE])
def test_in_a_folder_that_may_not_be_written_a_file_is_written_in_place(
    size: int, write: Write, locked: Path
) -> None:
    number, expected = locked.stat().st_ino, plain(write, size)
    locked.write_text("old" * (len(expected) // 2))  # once longer, once shorter than the new
    with as_somebody_else():
        write(locked, size)
    assert locked.read_bytes() == expected
    assert locked.stat().st_ino == number
    assert left_in(locked.parent) == ["tables.json"]


@pytest.mark.parametrize("write", [page, rewritten_trace, recording], indirect=True)
def test_a_file_that_is_written_in_place_stays_where_there_is_no_room(
    write: Write, locked: Path
) -> None:
    with (
        as_somebody_else(),
        files_up_to(LARGE // 2),
        pytest.raises(SelftimeError, match="cannot be written: File too large"),
    ):
        write(locked, LARGE)
    assert locked.read_text() == "old"


def test_room_is_reserved_before_a_file_is_written_in_place(output: Path) -> None:
    """The content may have had room elsewhere."""
    if not hasattr(os, "posix_fallocate"):
        pytest.skip("this system reserves no room")
    output.write_text("old")
    with files_up_to(LARGE // 2), pytest.raises(OSError, match="File too large"):
        output_file._overwrite_file_in_place(output, BytesIO(b"x" * LARGE))
    assert output.read_text() == "old"


def test_a_file_that_is_written_in_place_stays_where_the_content_fails(locked: Path) -> None:
    with as_somebody_else(), pytest.raises(ValueError, match="in the middle"):
        _fail_in_the_middle(locked, ValueError)
    assert locked.read_text() == "old"


@pytest.mark.skipif(not IS_ROOT, reason="only root can give")
def test_a_file_of_somebody_else_that_may_be_written_stays_theirs(open_folder: Path) -> None:
    open_folder.chmod(0o777)
    file = open_folder / "tables.json"
    file.write_text("old")
    file.chmod(0o666)
    with as_somebody_else():
        page(file, SMALL)
    assert file.read_text() == "x" * SMALL
    assert file.stat().st_uid == 0
    assert left_in(open_folder) == ["tables.json"]


@pytest.mark.parametrize("write", [page, rewritten_trace, recording], indirect=True)
def test_a_file_that_may_not_be_written_is_refused(write: Write, open_folder: Path) -> None:
    file = open_folder / "tables.json"
    file.write_text("old")
    file.chmod(0o444)
    open_folder.chmod(0o777)
    with (
        as_somebody_else(),
        pytest.raises(SelftimeError, match=r"cannot be written: Permission denied; choose another"),
    ):
        write(file, SMALL)
    assert file.read_text() == "old"
    assert left_in(open_folder) == ["tables.json"]


@pytest.mark.parametrize("write", [page, rewritten_trace, recording], indirect=True)
def test_a_new_file_where_none_may_be_is_refused(write: Write, open_folder: Path) -> None:
    open_folder.chmod(0o555)
    with (
        as_somebody_else(),
        pytest.raises(SelftimeError, match=r"cannot be written: Permission denied; choose another"),
    ):
        write(open_folder / "tables.json", SMALL)
    assert left_in(open_folder) == []


@pytest.mark.parametrize("old", [True, False])
def test_a_full_disk_leaves_what_was_there(old: bool, write: Write, output: Path) -> None:
    if old:
        output.write_text("old")
    with (
        files_up_to(LARGE // 2),
        pytest.raises(SelftimeError, match=r"cannot be written: File too large; choose another"),
    ):
        write(output, LARGE)
    assert left_in(output.parent) == (["tables.json"] if old else [])
    assert not old or output.read_text() == "old"
    assert list(output.parent.glob("*.csv")) == []


def _fail_in_the_middle(output: Path, error: type[BaseException]) -> None:
    with trace_file.open_file_writer(output, "none.json") as put:
        put(b"x" * LARGE)
        raise error("in the middle")


@pytest.mark.parametrize("unnamed", [True, False])
@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit])
def test_content_that_fails_leaves_what_was_there(
    error: type[BaseException], unnamed: bool, output: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not unnamed:
        monkeypatch.delattr(os, "O_TMPFILE", raising=False)
    output.write_text("old")
    with pytest.raises(error, match="in the middle"):
        _fail_in_the_middle(output, error)
    assert output.read_text() == "old"
    assert left_in(output.parent) == ["tables.json"]


def has_unnamed_files(folder: Path) -> bool:
    try:
        os.close(os.open(folder, os.O_TMPFILE | os.O_WRONLY))
    except (AttributeError, OSError):
        return False
    return Path("/proc/self/fd").is_dir()


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_process_that_is_ended_leaves_what_was_there(how: signal.Signals, output: Path) -> None:
    if how != signal.SIGINT and not has_unnamed_files(output.parent):
        pytest.skip("the file system of the temporary folder has no files without a name")
    output.write_text("old")
    program = """
        import sys
        from pathlib import Path
        from selftime.reports.trace_file import open_file_writer

        with open_file_writer(Path(sys.argv[1]), "none.json") as put:
            put(b"x" * 300_000)
            print("in the middle", flush=True)
            sys.stdin.read()
    """
    with subprocess.Popen(  # noqa: S603 - our own program
        [sys.executable, "-c", textwrap.dedent(program), str(output)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == b"in the middle\n"
        running.send_signal(how)
        running.communicate(timeout=60)
    assert running.returncode == -how
    assert output.read_text() == "old"
    assert left_in(output.parent) == ["tables.json"]


def test_a_process_that_may_open_no_more_files_is_told_so(output: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    number = os.open(output.parent, os.O_RDONLY)
    os.close(number)
    resource.setrlimit(resource.RLIMIT_NOFILE, (number, hard))
    try:
        with pytest.raises(SelftimeError, match=r"Too many open files; raise `ulimit -n`$"):
            page(output, SMALL)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert left_in(output.parent) == []


@pytest.mark.parametrize("write", [page, recording], indirect=True)
def test_a_folder_is_no_file(write: Write, output: Path) -> None:
    output.mkdir()
    with pytest.raises(SelftimeError, match="cannot be written: Is a directory"):
        write(output, SMALL)
    assert list(output.iterdir()) == []


def test_a_pipe_that_nobody_reads_any_more_ends_quietly(output: Path) -> None:
    """As stdout does: whoever reads has read enough."""
    os.mkfifo(output)
    reading = os.open(output, os.O_RDONLY | os.O_NONBLOCK)

    def write() -> None:
        with trace_file.open_file_writer(output, "none.json") as put:
            os.close(reading)
            put(b"x" * LARGE)

    with pytest.raises(BrokenPipeError):
        write()
    assert output.is_fifo()


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_link_to_a_folder_that_is_not_there_yet_leads_to_it(kind: str, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("real")
    told = export(Trace(), tmp_path / "link", to=kind)
    assert (tmp_path / "link").is_symlink()
    assert sorted(told.files) == sorted(path.name for path in (tmp_path / "real").iterdir())


def test_recordings_go_where_a_link_leads(tmp_path: Path) -> None:
    (tmp_path / "runs").symlink_to("real")
    trace_files.make_trace_folder(tmp_path / "runs")
    assert (tmp_path / "real").is_dir()
    assert (tmp_path / "runs").is_symlink()
