"""Puts the meetings of a job's ranks in an order in which each follows those that it depends on."""

import numpy as np

from selftime.array_types import Flags, Ints


def levels_of_meetings(meeting: Ints, node: Ints, before: Ints, reached: Ints) -> tuple[Ints, Ints]:
    """Returns the level of each meeting, above those that it follows, and the paths that count.

    Meetings of ranks that are taken for one by mistake may follow each other in a circle: of these
    the earliest goes first, and paths from later ones to it are left out, as are those of a meeting
    to itself.

    Args:
        meeting: The meeting of each of n nodes.
        node: The node that each path leads to; each node has one.
        before: The node that each path comes from, or n for none.
        reached: When each meeting was reached, in ns.
    """
    own = np.flatnonzero(before < meeting.size)
    to, since = meeting[node[own]], meeting[before[own]]
    is_dropped = np.zeros(node.size, bool)
    is_dropped[own[to == since]] = True
    order = np.argsort(since, kind="stable")
    order = order[to[order] != since[order]]
    levels = _Levels(to[order], since[order], reached)
    is_dropped[own[order[levels.is_dropped]]] = True
    return levels.level, np.flatnonzero(~is_dropped)


class _Levels:
    """The levels of meetings, and which of the paths between them lead back in a circle."""

    def __init__(self, to: Ints, since: Ints, reached: Ints) -> None:
        self.level = np.full(reached.size, -1, np.int64)
        self.is_dropped: Flags = np.zeros(to.size, bool)
        self._to, self._since, self._reached = to, since, reached
        self._first = np.searchsorted(since, np.arange(reached.size + 1))
        missing = np.bincount(to, minlength=reached.size)
        front = np.flatnonzero(missing == 0)
        at = done = 0
        while done < reached.size:
            if not front.size:
                front = self._earliest_of_circle()
            self.level[front] = at
            done += front.size
            follow = self._followers(front)
            np.subtract.at(missing, follow, 1)
            next_ = np.unique(follow)
            front = next_[(missing[next_] <= 0) & (self.level[next_] < 0)]
            at += 1

    def _followers(self, meetings: Ints) -> Ints:
        """Returns what follows the meetings, once for each path."""
        sizes = self._first[meetings + 1] - self._first[meetings]
        begins = np.repeat(self._first[meetings] - np.cumsum(sizes) + sizes, sizes)
        return self._to[begins + np.arange(int(sizes.sum()))]

    def _earliest_of_circle(self) -> Ints:
        left = np.flatnonzero(self.level < 0)
        first = left[[np.argmin(self._reached[left])]]
        self.is_dropped |= (self._to == first) & (self.level[self._since] < 0)
        return first
