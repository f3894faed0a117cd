"""Follows the ledgers of the newest run below a folder, also those that are not there yet."""

import os
from collections.abc import Iterator
from pathlib import Path

from selftime.ingest.ledger_progress.followed_file import FollowedFile
from selftime.ingest.ledger_progress.rank_ledger import RankLedger
from selftime.ledger_format import LEDGER_SUFFIX
from selftime.rank_progress import RankProgress


class _Followed:
    """A ledger and its file; of one of another run only the first line is read."""

    def __init__(self, path: Path) -> None:
        self.file, self.ledger = FollowedFile(path), RankLedger(str(path))
        self.head = RankLedger(str(path))
        """The ledger with its first line alone, which says whose it is."""

    @property
    def failure(self) -> str | None:
        """Returns why it cannot be read; None if it can, or has no line so far."""
        is_other = self.head.is_ledger is False
        return self.file.failure or ("it is no ledger of a run" if is_other else None)

    def read_head(self) -> None:
        """Reads the first line, if it was not read, and when the file was changed."""
        if self.head.is_ledger is not None:
            self.file.look()
        elif (line := self.file.first_line()) is not None:
            self.head.add_lines([line])

    def interval(self) -> tuple[int, int]:
        """Returns when the process began, and when its file was changed last."""
        return self.head.began_ns, max(self.file.written_ns, self.head.began_ns)


class FollowedRun:
    """The ledgers of one run: the newest below a folder, or that of a given ledger."""

    def __init__(self, path: Path) -> None:
        """Makes it for a folder, which may not be there yet, or a ledger, whose run it is then."""
        self._folder = path if not path.name.endswith(LEDGER_SUFFIX) else path.parent
        self._given = None if self._folder == path else str(path)
        self._known: dict[str, _Followed] = {}
        self.unread: dict[str, str] = {}
        """Maps each file that is named as a ledger and cannot be read to the reason."""

    def read(self) -> list[RankProgress]:
        """Reads what is new, and returns what is known of each process of the run, by rank."""
        for path in _ledger_paths(self._folder):
            if path not in self._known:
                self._known[path] = _Followed(Path(path))
        for followed in self._known.values():
            followed.read_head()
        of_run = self._of_run()
        for followed in of_run:
            followed.ledger.add_lines(followed.file.new_lines())
        failures = {path: followed.failure for path, followed in self._known.items()}
        self.unread = {path: why for path, why in failures.items() if why is not None}
        found = [one.ledger.progress(one.file.written_ns) for one in of_run]
        return sorted(found, key=lambda one: (one.rank is None, one.rank or 0, one.process or 0))

    def _of_run(self) -> list[_Followed]:
        """Returns the ledgers of the run; of several of a rank the one that began last."""
        ledgers = {path: one for path, one in self._known.items() if one.head.is_ledger}
        if not ledgers or (self._given is not None and self._given not in ledgers):
            return []
        newest = ledgers[self._given or max(ledgers, key=lambda path: _order(ledgers[path]))]
        of_run = [one for one in ledgers.values() if one is newest or _is_beside(one, newest)]
        if all(one.head.rank is None for one in of_run):
            return of_run
        by_rank = {one.head.rank: one for one in sorted(of_run, key=_order)}
        if newest.head.rank is not None:
            by_rank[newest.head.rank] = newest
        by_rank.pop(None, None)  # the process that started the ranks
        return list(by_rank.values())


def _ledger_paths(folder: Path) -> Iterator[str]:
    """Yields the paths of files below a folder that are named as ledgers; none without a folder."""
    for root, _, names in os.walk(folder):
        for name in names:
            if name.endswith(LEDGER_SUFFIX):
                yield str(Path(root, name))


def _order(followed: _Followed) -> tuple[int, str]:
    return followed.head.began_ns, followed.head.source


def _is_beside(one: _Followed, newest: _Followed) -> bool:
    """Returns whether two ledgers are of one run: they ran at the same time, for one job."""
    jobs = {one.head.job, newest.head.job} - {None}
    (began, ended), (newest_began, newest_ended) = one.interval(), newest.interval()
    return len(jobs) < 2 and began <= newest_ended and newest_began <= ended
