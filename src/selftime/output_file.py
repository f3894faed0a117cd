"""Writes an output file completely, or leaves the old file unchanged.

Symbolic links are followed and kept. What happens then depends on their target:

- Nothing, or a regular file: the content is written to a temporary file in the same folder, which
  then replaces the target. Owner, mode, access list and attributes are kept; a new file gets its
  mode from the umask. Another hard link to the file keeps the old content.
- A regular file that cannot be replaced, because its folder is not writable, its owner cannot be
  kept, or it is a mount point: the content is written to a temporary file elsewhere, then copied
  into the target after the file system has reserved the space. This is the only case that can
  leave a file half written, if the process is killed during the copy.
- A device, a pipe, a socket, or a descriptor of this process (`/dev/stdout`, `/dev/fd/3`,
  `>(command)` in a shell): each piece of content is written to it at once.
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

__all__ = ["make_folder", "open_output", "report_output_errors"]

_FILE_DESCRIPTOR_FOLDERS: Final = ("/dev/fd", "/proc/self/fd", "/proc/thread-self/fd")
"""Folders that list the open files of this process by descriptor number."""
_MAX_FOLLOWED_SYMBOLIC_LINKS: Final = 40
"""Largest number of symbolic links that are followed, as on Linux."""
_ERRNOS_TO_WRITE_IN_PLACE: Final = frozenset(
    {
        errno.EACCES,  # the folder is not writable
        errno.EPERM,  # the owner cannot be changed
        errno.EROFS,  # a writable file is mounted into a read-only folder
        errno.EBUSY,  # the file is a mount point
        errno.EINVAL,  # the owner does not exist in this container
        errno.ENOENT,  # the folder is in /proc
        errno.ENOTSUP,  # the file system has no access lists
    }
)
"""Error numbers of a failed replacement of a file after which overwriting its content may still
work."""
_ERRNOS_OF_NO_SPACE: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
"""Error numbers that mean that the file system has no space left."""
_ACCESS_LIST_EXTENDED_ATTRIBUTE: Final = "system.posix_acl_access"
"""Name of the extended attribute with a file's access list."""


STDOUT_NAME: Final = "-"
"""What stands for stdout where a file is to be named."""


@contextmanager
def open_output(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """Yields a binary file for new content, which replaces the file at `path` if no error occurs.

    A regular file changes when the `with` block ends, and not at all if the block raises. `-` is
    stdout.

    Raises:
        OSError: It cannot be written.
    """
    target = 1 if os.fspath(path) == STDOUT_NAME else _resolve_symbolic_links(Path(path))
    target_stat = None if isinstance(target, int) else _stat_if_exists(target)
    if isinstance(target, int):
        output = _open_file_descriptor(target)
    elif target_stat is None or stat.S_ISREG(target_stat.st_mode):
        with _write_temporary_file_then_replace(target, target_stat) as temporary:
            yield temporary
        return
    else:
        output = _open_special_file(target, target_stat)
    with output:
        yield output


@contextmanager
def report_output_errors(path: str | os.PathLike[str], *, option: str = "-o") -> Iterator[None]:
    """Turns an OSError in the block into a SelftimeError that says that `path` cannot be written.

    Args:
        path: The file or folder that is written.
        option: The command-line option that names it, for the message.

    Raises:
        BrokenPipeError: The pipe's reader has closed it.
        SelftimeError: `path` cannot be written.
    """
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        reason = error.strerror or error
        is_limited = error.errno == errno.EMFILE
        advice = "raise `ulimit -n`" if is_limited else f"choose another path with `{option}`"
        raise SelftimeError(f"`{os.fspath(path)}` cannot be written: {reason}; {advice}") from error


def make_folder(folder: Path) -> None:
    """Makes the folder and its parents if they do not exist; keeps a symbolic link to a folder.

    Raises:
        OSError: It cannot be made.
    """
    target = _resolve_symbolic_links(folder)
    Path(folder if isinstance(target, int) else target).mkdir(parents=True, exist_ok=True)


def _resolve_symbolic_links(path: Path) -> Path | int:
    """Returns the path that links lead to, or a descriptor number for a path like /dev/fd/1."""
    descriptor_folders = {os.path.realpath(folder) for folder in _FILE_DESCRIPTOR_FOLDERS}
    for _ in range(_MAX_FOLLOWED_SYMBOLIC_LINKS):
        folder = Path(os.path.realpath(path.parent))
        target = folder / path.name
        if (
            os.fspath(folder) in descriptor_folders
            and path.name.isascii()
            and path.name.isdecimal()
        ):
            return int(path.name)
        try:
            target_stat = target.lstat()
        except FileNotFoundError:
            return target
        _refuse_other_users_file(folder, target_stat)
        # The text of a link in /proc is not its target.
        if not stat.S_ISLNK(target_stat.st_mode) or folder.is_relative_to("/proc"):
            return target
        path = folder / target.readlink()
    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))


def _refuse_other_users_file(folder: Path, target_stat: os.stat_result) -> None:
    """Refuses a link, pipe or file of another user in a world-writable folder such as /tmp.

    Linux has the same rule (`fs.protected_symlinks` and others), but not on every machine, and not
    for a file that is opened without being created.

    Raises:
        PermissionError: The target belongs to another user.
    """
    if stat.S_IFMT(target_stat.st_mode) not in {stat.S_IFLNK, stat.S_IFIFO, stat.S_IFREG}:
        return
    folder_stat = folder.stat()
    is_world_writable = folder_stat.st_mode & stat.S_ISVTX and folder_stat.st_mode & stat.S_IWOTH
    if is_world_writable and target_stat.st_uid not in {os.geteuid(), folder_stat.st_uid}:
        raise PermissionError(
            errno.EACCES, "another user created it in a folder that everybody may write to"
        )


def _stat_if_exists(target: Path) -> os.stat_result | None:
    """Returns the status of a file; None if it does not exist."""
    try:
        return target.stat()
    except FileNotFoundError:
        return None


def _open_file_descriptor(descriptor: int) -> IO[bytes]:
    """Returns a file object for a duplicate of a file descriptor.

    Opening the descriptor's path would write from the beginning.
    """
    for stream in (sys.stdout, sys.stderr):
        if stream is not None and not stream.closed:
            stream.flush()
    return os.fdopen(os.dup(descriptor), "wb")


def _open_special_file(target: Path, target_stat: os.stat_result) -> IO[bytes]:
    """Opens a device, pipe or socket; opening a folder raises IsADirectoryError."""
    if stat.S_ISSOCK(target_stat.st_mode):
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(os.fspath(target))
            return connection.makefile("wb")
    return _open_without_truncating(target)


def _open_without_truncating(target: Path) -> IO[bytes]:
    """Opens an existing file for writing, without deleting its content."""

    def opener(name: str, flags: int) -> int:
        return os.open(name, flags & ~(os.O_CREAT | os.O_TRUNC) | getattr(os, "O_NOCTTY", 0))

    return open(target, "wb", opener=opener)


@contextmanager
def _write_temporary_file_then_replace(
    target: Path, target_stat: os.stat_result | None
) -> Iterator[IO[bytes]]:
    """Yields a temporary file that replaces `target` after the block, unless the block fails."""
    if target_stat is not None:
        _open_without_truncating(target).close()  # raises for a read-only file
    temporary = _create_temporary_file(target.parent, target_stat)
    try:
        yield temporary.file
        temporary.file.flush()
        if not temporary.try_replace(target, target_stat):
            _overwrite_file_in_place(target, temporary.file)
    finally:
        temporary.close_and_remove()


@dataclass(slots=True)
class _TemporaryFile:
    """A temporary file; it has no name if the system can give it one later.

    An unnamed file disappears with the process, however that ends.
    """

    file: IO[bytes]
    folder: Path | None
    """The folder in which the file can get a name; None if it cannot replace the output file."""
    name: Path | None = None

    def try_replace(self, target: Path, target_stat: os.stat_result | None) -> bool:
        """Replaces `target` by this file; returns False if `target` must be overwritten instead."""
        if self.folder is None:
            return False
        try:
            if target_stat is not None:
                _copy_access_rights(self.file.fileno(), target, target_stat)
            if self.name is None:
                self.name = _link_unnamed_file(self.file, self.folder)
            if os.name == "nt":  # Windows cannot rename an open file
                self.file.close()
            self.name.replace(target)
        except OSError as error:
            if (
                target_stat is None
                or self.file.closed
                or error.errno not in _ERRNOS_TO_WRITE_IN_PLACE
            ):
                raise
            return False
        return True

    def close_and_remove(self) -> None:
        """Closes the file, and deletes it unless it has replaced the target."""
        with suppress(OSError):  # unwritten data fails again on close
            self.file.close()
        if self.name is not None:
            self.name.unlink(missing_ok=True)


def _create_temporary_file(folder: Path, target_stat: os.stat_result | None) -> _TemporaryFile:
    """Creates a temporary file in the folder, or elsewhere if only the target is writable.

    When it replaces an existing file, only the owner may access it until it has that file's rights.
    """
    mode = 0o666 if target_stat is None else 0o600
    try:
        file = _open_unnamed_temporary_file(folder, mode)
        return (
            _create_named_temporary_file(folder, mode)
            if file is None
            else _TemporaryFile(file, folder)
        )
    except OSError as error:
        if target_stat is None or error.errno not in _ERRNOS_TO_WRITE_IN_PLACE:
            raise
    return _TemporaryFile(tempfile.TemporaryFile(), None)


def _open_unnamed_temporary_file(folder: Path, mode: int) -> IO[bytes] | None:
    """Opens a file without a name; returns None if the system cannot do so or link it later."""
    if not hasattr(os, "O_TMPFILE"):
        return None
    try:
        descriptor = os.open(folder, os.O_TMPFILE | os.O_RDWR, mode)
    except OSError:  # unsupported, or an error that a named file raises too
        return None
    try:
        os.stat(f"/proc/self/fd/{descriptor}")  # noqa: PTH116 - not a path of the user's
    except OSError:
        os.close(descriptor)
        return None
    return os.fdopen(descriptor, "w+b")


def _create_named_temporary_file(folder: Path, mode: int) -> _TemporaryFile:
    """Creates a temporary file with a random name in the folder."""
    name = _random_temporary_path(folder)

    def opener(path: str, flags: int) -> int:
        return os.open(path, flags, mode)

    return _TemporaryFile(open(name, "x+b", opener=opener), folder, name)


def _random_temporary_path(folder: Path) -> Path:
    """Returns the path of a new temporary file in the folder."""
    return folder / f".selftime-{os.urandom(8).hex()}"


def _link_unnamed_file(file: IO[bytes], folder: Path) -> Path:
    """Links an unnamed open file into the folder under a random name."""
    name = _random_temporary_path(folder)
    descriptor = os.open(folder, os.O_PATH)  # works for a folder that is not readable
    try:
        # With `dst_dir_fd` Python makes the system follow the link in /proc.
        os.link(f"/proc/self/fd/{file.fileno()}", name.name, dst_dir_fd=descriptor)
    finally:
        os.close(descriptor)
    return name


def _copy_access_rights(descriptor: int, old_file: Path, target_stat: os.stat_result) -> None:
    """Gives an open file the owner, mode, access list and attributes of the old file."""
    if not hasattr(os, "fchown"):  # not on Windows
        return
    new_stat = os.fstat(descriptor)
    if (new_stat.st_uid, new_stat.st_gid) != (target_stat.st_uid, target_stat.st_gid):
        os.fchown(descriptor, target_stat.st_uid, target_stat.st_gid)
    os.fchmod(descriptor, target_stat.st_mode & 0o777)  # without set-user-ID bits
    names_to_copy = _user_extended_attributes(old_file)
    for name in _user_extended_attributes(descriptor) - names_to_copy:
        os.removexattr(descriptor, name)
    for name in names_to_copy:
        os.setxattr(descriptor, name, os.getxattr(old_file, name))


def _user_extended_attributes(path_or_descriptor: Path | int) -> set[str]:
    """Returns the names of a file's user-set extended attributes and of its access list."""
    if not hasattr(os, "listxattr"):  # exists on Linux only
        return set()
    try:
        names = os.listxattr(path_or_descriptor)
    except OSError as error:
        if error.errno != errno.ENOTSUP:
            raise
        return set()
    return {
        name
        for name in names
        if name == _ACCESS_LIST_EXTENDED_ATTRIBUTE or name.startswith("user.")
    }


def _overwrite_file_in_place(target: Path, content: IO[bytes]) -> None:
    """Copies the content into an existing file, after reserving the space for all of it."""
    size = content.seek(0, os.SEEK_END)
    content.seek(0)
    with _open_without_truncating(target) as file:
        _reserve_disk_space(file.fileno(), size)
        shutil.copyfileobj(content, file)
        file.truncate()


def _reserve_disk_space(descriptor: int, size: int) -> None:
    """Reserves this many bytes for a file in the file system, where supported."""
    if not size or not hasattr(os, "posix_fallocate"):
        return
    before = os.fstat(descriptor).st_size
    try:
        os.posix_fallocate(descriptor, 0, size)
    except OSError as error:
        if error.errno in _ERRNOS_OF_NO_SPACE:
            os.ftruncate(descriptor, before)
            raise
