"""Names the rows of a step's account: what their time was spent on, and at which line."""

from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from selftime import names
from selftime.advice.account.account_rows import AccountRow, optimizer_of_row
from selftime.advice.rule_outcomes import Where
from selftime.reports.advice.wording import file_and_line_text
from selftime.reports.labels import TIME_CLASS_LABELS
from selftime.reports.plain import cut_text_middle, plain
from selftime.units import count_text, truncate_middle

_MAX_NAME_CHARACTERS: Final = 60
"""Largest width of a name in a sentence; a longer one loses its middle."""
_MAX_PATH_CHARACTERS: Final = 44
"""Largest width of a path in a sentence; a longer one loses its first folders."""
_MAX_PATH_CHARACTERS_OF_CELL: Final = 34
"""The same in a cell of a table."""
HOST_COMPUTING: Final = "computing on the host"
"""The words for computing on the host of a program that uses a device."""
UNRECORDED_PHRASES: Final = {
    "other": "on the host between recorded calls",
    "device_wait": "waiting for device work that was not recorded",
}
"""Maps classes to the words for their time that nothing recorded covers."""


@dataclass(frozen=True, slots=True)
class Place:
    """The source line, or the name, that time belongs to; None where it is unknown."""

    file: str | None
    line: int | None
    what: str | None
    defines: str | None = None
    """The function that is defined at the line, where that is all that is known of a line in it."""


def is_unrecorded(row: AccountRow) -> bool:
    """Returns whether no call or frame that was recorded covers a row's time.

    An annotation may, which tells of no call, but not work of the profiler.
    """
    if row.time_class not in UNRECORDED_PHRASES or row.places > 1:
        return False
    if row.what is not None:
        return row.time_class == "other" and not names.is_profiler_overhead(row.what)
    return row.where.file is None and row.finding is None


def place_of(row: AccountRow) -> Place:
    return place_at(row.where, row.what)


def place_at(where: Where, what: str | None) -> Place:
    is_line = where.how != "definition" or where.line is None
    return Place(where.file, where.line, what, None if is_line else where.function)


def is_same_place(one: Place, other: Place) -> bool:
    """Returns whether two places are one line, or one name where no line is known."""
    if one.file is None or other.file is None:
        return one == other
    return (one.file, one.line, one.defines) == (other.file, other.line, other.defines)


def place_text(place: Place, root: str | None, *, with_name: bool) -> str:
    """Returns the line, else the name; both with `with_name`.

    Both as well where only the file is known, if the name is not that of a function in a file.
    """
    name = ""
    if place.what is not None:
        shown = names.without_backward_node_prefix(plain(place.what))
        if len(shown) > _MAX_NAME_CHARACTERS:
            shown = names.short_kernel_name(shown)
        name = f" in `{cut_text_middle(shown, _MAX_NAME_CHARACTERS)}`"
    if place.file is None:
        return name
    line = f" at `{_short_path(file_and_line_text(place.file, place.line, root))}`"
    if place.defines is not None:
        shown = cut_text_middle(plain(place.defines), _MAX_NAME_CHARACTERS)
        line = f" in the function `{shown}`, defined{line}"
    is_function = place.what is not None and names.parse_frame(place.what) is not None
    return f"{name}{line}" if with_name or (place.line is None and not is_function) else line


def _short_path(path: str, width: int = _MAX_PATH_CHARACTERS) -> str:
    """Returns the end of a long path: as many of its last parts as fit, at least the file."""
    if len(path) <= width:
        return path
    *folders, file = path.split("/")
    kept = file
    for folder in reversed(folders):
        if len(kept) + len(folder) + 3 > width:
            break
        kept = f"{folder}/{kept}"
    return f"…/{kept}"


def row_texts(rows: tuple[AccountRow, ...], root: str | None = None) -> list[str]:
    """Returns what each row's time was spent on and where, such as `computing at train.py:7`.

    Rows of one class and line have the name of what took most of their time as well, where that
    tells them apart.
    """
    return [
        _row_text(row, root, with_name=with_name)
        for row, with_name in zip(rows, _need_names(rows), strict=True)
    ]


def _need_names(rows: tuple[AccountRow, ...]) -> list[bool]:
    """Returns of each row whether a name tells it from another one of its class and line."""
    lines = [(row.time_class, row.where.file, row.where.line) for row in rows]
    names_of_lines: dict[tuple[str, str | None, int | None], set[str | None]] = {}
    for row, line in zip(rows, lines, strict=True):
        names_of_lines.setdefault(line, set()).add(row.what)
    return [len(names_of_lines[line]) > 1 for line in lines]


def _row_text(row: AccountRow, root: str | None, *, with_name: bool) -> str:
    label = _label_of(row)
    if row.places > 1:
        return f"{label} in {count_text(row.places)} places"
    optimizer = optimizer_of_row(row)
    place = place_of(row)
    if optimizer is not None:
        where = "" if place.file is None else place_text(place, root, with_name=False)
        return f"{label} in the optimizer `{plain(optimizer)}`{where}"
    with_name = with_name or row.time_class == "communication"
    return f"{label}{place_text(place, root, with_name=with_name)}{_caller_text(row, root)}"


class RowCells(NamedTuple):
    """A row in short texts, for a table."""

    what: str
    """What the time was spent on."""
    name: str | None
    """The name of what ran or the number of places; None if the line tells enough."""
    line: str | None
    """The line; None if none is known."""


def row_cells(rows: tuple[AccountRow, ...], root: str | None = None) -> list[RowCells]:
    """Returns each row in short texts.

    >>> row = AccountRow(time_class="copy", ms=1, share=1, verdict="small", text="", places=3)
    >>> row_cells((row,))
    [RowCells(what='copying', name='3 places', line=None)]
    """
    return [
        _row_cells(row, root, with_name=with_name)
        for row, with_name in zip(rows, _need_names(rows), strict=True)
    ]


def _row_cells(row: AccountRow, root: str | None, *, with_name: bool) -> RowCells:
    place, optimizer, line = place_of(row), optimizer_of_row(row), None
    if place.file is not None:
        line = file_and_line_text(place.file, place.line, root)
        line = _short_path(line, _MAX_PATH_CHARACTERS_OF_CELL)
    if row.places > 1:
        name = f"{count_text(row.places)} places"
    elif optimizer is not None:
        name = f"in the optimizer `{plain(optimizer)}`"
    elif line is not None and not with_name and row.time_class != "communication":
        name = ""
    else:
        named = replace(place, file=None, line=None, defines=None)
        name = place_text(named, root, with_name=True).strip()
    return RowCells(_label_of(row), name or None, line)


def _label_of(row: AccountRow) -> str:
    if is_unrecorded(row):
        return UNRECORDED_PHRASES[row.time_class]
    return HOST_COMPUTING if row.computes_on_host else TIME_CLASS_LABELS[row.time_class].text


def _caller_text(row: AccountRow, root: str | None) -> str:
    """Returns where the function of a row is called most; empty if its own line tells enough."""
    if row.called_at.file is None:
        return ""
    is_line = row.called_at.how != "definition"
    called_at = Place(row.called_at.file, row.called_at.line if is_line else None, None)
    function = "" if is_line else f" in `{truncate_middle(plain(row.called_at.function or ''))}`"
    return f", called most{function}{place_text(called_at, root, with_name=False)}"
