"""Writes the file that a user names for output; what the name leads to stays what it is.

Symbolic links are followed and stay links. What happens then depends on what they lead to:

- Nothing yet, or a regular file: the content goes into a temporary file in the same folder, which
  takes the place of the file once it is whole. Owner, mode, access list and attributes stay; a new
  file gets its mode from the umask. Another hard link to the file keeps the old content.
- A regular file that cannot be replaced, because its folder may not be written, its owner cannot be
  kept, or it is a mount point: the content goes into a temporary file elsewhere, and is copied into
  the file once it is whole and the file system has reserved the room for it. This alone can leave a
  file half written, if the process is killed while it copies.
- A device, a pipe, a socket, or a descriptor of this process (`/dev/stdout`, `/dev/fd/3`,
  `>(command)` in a shell): the content is written to it as it comes.
"""

import errno
import os
import shutil
import socket
import stat
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

from selftime.errors import SelftimeError

__all__ = ["make_folder", "open_output", "told_in_a_sentence"]

_DESCRIPTORS: Final = ("/dev/fd", "/proc/self/fd", "/proc/thread-self/fd")
"""Folders whose entries are this process's open files, by their numbers."""
_MOST_LINKS: Final = 40
"""One that leads to another, as Linux counts them."""
_UNREPLACEABLE: Final = frozenset(
    {
        errno.EACCES,  # no right to write into the folder
        errno.EPERM,  # no right to give the file away
        errno.EROFS,  # the folder is read-only, and the file mounted into it is not
        errno.EBUSY,  # the file is a mount point
        errno.EINVAL,  # the owner does not exist in this container
        errno.ENOENT,  # the folder is one of /proc
        errno.ENOTSUP,  # the file system keeps no access lists
    }
)
"""Errors of replacing after which an existing file may still be written in place."""
_NO_ROOM: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
_ACCESS_LIST: Final = "system.posix_acl_access"


@contextmanager
def open_output(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """Open the file that `path` names for its whole new content.

    A regular file changes when the `with` block ends, and not at all if an exception ends it.

    Raises:
        OSError: It cannot be written.
    """
    place = _followed(Path(path))
    found = None if isinstance(place, int) else _found(place)
    if isinstance(place, int):
        opened = _duplicate(place)
    elif found is None or stat.S_ISREG(found.st_mode):
        with _replacing(place, found) as draft:
            yield draft
        return
    else:
        opened = _existing(place, found)
    with opened:
        yield opened


@contextmanager
def told_in_a_sentence(path: str | os.PathLike[str]) -> Iterator[None]:
    """Turn an error of the system into the sentence that `path` cannot be written.

    Raises:
        BrokenPipeError: Whoever reads has read enough.
        SelftimeError: `path` cannot be written.
    """
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        why = error.strerror or error
        is_limited = error.errno == errno.EMFILE
        cure = "raise `ulimit -n`" if is_limited else "choose another place with `-o`"
        raise SelftimeError(f"`{os.fspath(path)}` cannot be written: {why}; {cure}") from error


def make_folder(folder: Path) -> None:
    """Make the folder and those around it unless they are there; a link to it stays a link.

    Raises:
        OSError: It cannot be made.
    """
    place = _followed(folder)
    Path(folder if isinstance(place, int) else place).mkdir(parents=True, exist_ok=True)


def _followed(path: Path) -> Path | int:
    """Where the links of `path` lead; a number if that is a descriptor of this process."""
    own = {os.path.realpath(folder) for folder in _DESCRIPTORS}
    for _ in range(_MOST_LINKS):
        folder = Path(os.path.realpath(path.parent))
        place = folder / path.name
        if os.fspath(folder) in own and path.name.isascii() and path.name.isdecimal():
            return int(path.name)
        try:
            known = place.lstat()
        except FileNotFoundError:
            return place
        _refuse_planted(folder, known)
        # The links of /proc do not tell by their text where they lead.
        if not stat.S_ISLNK(known.st_mode) or folder.is_relative_to("/proc"):
            return place
        path = folder / place.readlink()
    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))


def _refuse_planted(folder: Path, known: os.stat_result) -> None:
    """Refuse what another user put into a folder such as /tmp: it may lead anywhere.

    Linux has the same rule (`fs.protected_symlinks` and others), but not on every machine, and not
    for a file that is opened without being created.
    """
    if stat.S_IFMT(known.st_mode) not in {stat.S_IFLNK, stat.S_IFIFO, stat.S_IFREG}:
        return
    shared = folder.stat()
    is_everybodys = shared.st_mode & stat.S_ISVTX and shared.st_mode & stat.S_IWOTH
    if is_everybodys and known.st_uid not in {os.geteuid(), shared.st_uid}:
        raise PermissionError(
            errno.EACCES, "another user put it into a folder where everybody may write"
        )


def _found(place: Path) -> os.stat_result | None:
    try:
        return place.stat()
    except FileNotFoundError:
        return None


def _duplicate(number: int) -> IO[bytes]:
    """The open file of that number: opened again, it would be written from its beginning."""
    for stream in (sys.stdout, sys.stderr):
        if stream is not None and not stream.closed:
            stream.flush()
    return os.fdopen(os.dup(number), "wb")


def _existing(place: Path, found: os.stat_result) -> IO[bytes]:
    """A device, a pipe or a socket; of a folder the error that it is one."""
    if stat.S_ISSOCK(found.st_mode):
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(os.fspath(place))
            return connection.makefile("wb")
    return _opened_in_place(place)


def _opened_in_place(place: Path) -> IO[bytes]:
    """What is there, neither created nor emptied; a terminal does not become the process's own."""

    def opener(name: str, flags: int) -> int:
        return os.open(name, flags & ~(os.O_CREAT | os.O_TRUNC) | getattr(os, "O_NOCTTY", 0))

    return open(place, "wb", opener=opener)


@contextmanager
def _replacing(place: Path, found: os.stat_result | None) -> Iterator[IO[bytes]]:
    """A temporary file that becomes the file at `place` if all goes well."""
    if found is not None:
        _opened_in_place(place).close()  # a file that is protected from writing is not replaced
    draft = _draft(place.parent, found)
    try:
        yield draft.file
        draft.file.flush()
        if not draft.replace(place, found):
            _overwrite(place, draft.file)
    finally:
        draft.drop()


@dataclass(slots=True)
class _Draft:
    """A temporary file, without a name where the system can give it one later.

    What has no name is gone with the process, however that ends.
    """

    file: IO[bytes]
    folder: Path | None
    """The folder in which it can have a name."""
    name: Path | None = None

    def replace(self, place: Path, found: os.stat_result | None) -> bool:
        """Take the place of the file there; False if that can only be written in place."""
        if self.folder is None:
            return False
        try:
            if found is not None:
                _keep_access(self.file.fileno(), place, found)
            if self.name is None:
                self.name = _given_name(self.file, self.folder)
            if os.name == "nt":  # an open file cannot be renamed there
                self.file.close()
            self.name.replace(place)
        except OSError as error:
            if found is None or self.file.closed or error.errno not in _UNREPLACEABLE:
                raise
            return False
        return True

    def drop(self) -> None:
        """Close it, and remove it unless it has taken its place."""
        with suppress(OSError):  # what could not be written still cannot
            self.file.close()
        if self.name is not None:
            self.name.unlink(missing_ok=True)


def _draft(folder: Path, found: os.stat_result | None) -> _Draft:
    """A draft in the folder; elsewhere if only the file that is there may be written.

    In place of an existing file it is nobody else's until it has that file's rights.
    """
    mode = 0o666 if found is None else 0o600
    try:
        unnamed = _unnamed(folder, mode)
        return _named(folder, mode) if unnamed is None else _Draft(unnamed, folder)
    except OSError as error:
        if found is None or error.errno not in _UNREPLACEABLE:
            raise
    return _Draft(tempfile.TemporaryFile(), None)


def _unnamed(folder: Path, mode: int) -> IO[bytes] | None:
    """An open file without a name; None where the system has none, or cannot name it later."""
    if not hasattr(os, "O_TMPFILE"):
        return None
    try:
        number = os.open(folder, os.O_TMPFILE | os.O_RDWR, mode)
    except OSError:  # the file system has none, or a file with a name tells the same error
        return None
    try:
        os.stat(f"/proc/self/fd/{number}")  # noqa: PTH116 - it is no path of the user's
    except OSError:
        os.close(number)
        return None
    return os.fdopen(number, "w+b")


def _named(folder: Path, mode: int) -> _Draft:
    name = _new_name(folder)

    def opener(path: str, flags: int) -> int:
        return os.open(path, flags, mode)

    return _Draft(open(name, "x+b", opener=opener), folder, name)


def _new_name(folder: Path) -> Path:
    return folder / f".selftime-{os.urandom(8).hex()}"


def _given_name(file: IO[bytes], folder: Path) -> Path:
    """Give an open file without a name one in the folder."""
    name = _new_name(folder)
    number = os.open(folder, os.O_PATH)  # a folder may be written that may not be read
    try:
        # With a folder's number Python asks the system to follow the link of /proc.
        os.link(f"/proc/self/fd/{file.fileno()}", name.name, dst_dir_fd=number)
    finally:
        os.close(number)
    return name


def _keep_access(number: int, old: Path, found: os.stat_result) -> None:
    """Give an open file the owner, the mode, the access list and the attributes of the old one."""
    if not hasattr(os, "fchown"):  # Windows has none of them
        return
    own = os.fstat(number)
    if (own.st_uid, own.st_gid) != (found.st_uid, found.st_gid):
        os.fchown(number, found.st_uid, found.st_gid)
    os.fchmod(number, found.st_mode & 0o777)  # new content runs with nobody's rights
    kept = _attributes(old)
    for name in _attributes(number) - kept:  # a folder may hand rights down to new files
        os.removexattr(number, name)
    for name in kept:
        os.setxattr(number, name, os.getxattr(old, name))


def _attributes(file: Path | int) -> set[str]:
    """The names of what a user may set of a file besides its mode."""
    if not hasattr(os, "listxattr"):  # Linux alone has them
        return set()
    try:
        names = os.listxattr(file)
    except OSError as error:
        if error.errno != errno.ENOTSUP:
            raise
        return set()
    return {name for name in names if name == _ACCESS_LIST or name.startswith("user.")}


def _overwrite(place: Path, content: IO[bytes]) -> None:
    """Copy the content into the file that is there, if there is room for all of it."""
    size = content.seek(0, os.SEEK_END)
    content.seek(0)
    with _opened_in_place(place) as file:
        _reserve(file.fileno(), size)
        shutil.copyfileobj(content, file)
        file.truncate()


def _reserve(number: int, size: int) -> None:
    """Let the file system set room aside for so many bytes, where it can."""
    if not size or not hasattr(os, "posix_fallocate"):
        return
    before = os.fstat(number).st_size
    try:
        os.posix_fallocate(number, 0, size)
    except OSError as error:
        if error.errno in _NO_ROOM:
            os.ftruncate(number, before)
            raise
