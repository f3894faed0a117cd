"""Holds messages back until the program has ended, so that they do not mix with its output."""

from collections.abc import Callable


class UserMessages:
    """Messages to the user, each one sentence."""

    def __init__(self, notify: Callable[[str], None] | None) -> None:
        self._notify = notify
        self._sentences: list[str] = []

    def add(self, sentence: str) -> None:
        """Adds a message that `show` will show."""
        self._sentences.append(sentence)

    @property
    def waiting(self) -> tuple[str, ...]:
        """Returns the messages that were not shown yet."""
        return tuple(self._sentences)

    def clear(self) -> None:
        """Drops all messages, since they are about a recording that was replaced."""
        self._sentences.clear()

    def show(self) -> None:
        """Shows all messages, once, in the order in which they were added."""
        while self._sentences:
            sentence = self._sentences.pop(0)
            if self._notify is not None:
                self._notify(sentence)
