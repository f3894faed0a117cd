r"""Find private data in text, such as users, hosts and paths, by its form or by its key.

Private words without such a form cannot be recognised: the name of a model, a function or a
company. A user who shares a trace names such words.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from selftime.errors import UsageError
from selftime.names.frames import frame

Pattern = re.Pattern[str]
Match = re.Match[str]
Hide = Callable[[str, str], str]
"""Returns the replacement of a private text: `hide(kind, text)`."""

_FILES: Final = (
    r"py[xc]?|ipynb|c|cc|cpp|cxx|cuh?|hp*|so|dll|jsonl?|gz|pth?|ckpt|bin|onnx|safetensors|np[yz]|txt"
    r"|md|ya?ml|toml|ini|cfg|sh|csv|tsv|parquet|log|html|xml|zip|tar"
)
_FORMS: Final = (
    ("address", r"(?<![A-Za-z0-9+.-])(?!file:)[A-Za-z][A-Za-z0-9+.-]*://[^\s\"'<>()\[\]{};,]+"),
    ("e-mail", r"(?<![\w.+-])[\w.+-]+@[\w-]+(?:\.[\w-]+)*"),
    (
        "secret",
        (
            r"(?i:(?<=password)|(?<=passwd)|(?<=secret)|(?<=token)|(?<=api_key)|(?<=apikey)"
            r"|(?<=api-key))[\"']?[ ]?[=:][ ]?[\"']?[^\s\"';,&]+"
        ),
    ),
    (
        "secret",
        (
            r"\b(?:hf_|gh[pousr]_|github_pat_|glpat-|sk-|xox[abprs]-|pypi-|npm_|AKIA|ASIA|AIza"
            r"|ya29\.|eyJ)[\w.+/=-]{12,}"
        ),
    ),
    ("id", r"\b[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}\b"),
    ("id", r"\b(?:[0-9a-f]{32,}|[0-9A-F]{32,})\b"),
    ("PCI id", r"\b(?:[0-9a-fA-F]{4,8}:)?[0-9a-fA-F]{2}:[01][0-9a-fA-F]\.[0-7]\b"),
    ("network address", r"(?<![\w:.])(?:[0-9A-Fa-f]{1,4}:){3,7}:?[0-9A-Fa-f]{1,4}(?![\w:])"),
    (
        "network address",
        r"(?i:(?<![\w:.])(?:fe80|f[cd][0-9a-f]{2}|[23][0-9a-f]{3})::?[0-9a-f:]+(?![\w:]))",
    ),
    (
        "network address",
        r"(?<![\w.])(?:(?:25[0-5]|2[0-4]\d|1?\d?\d)\.){3}(?:25[0-5]|2[0-4]\d|1?\d?\d)(?![\w.]*\d)",
    ),
)
_PATHS: Final = (
    r"(?<![\w\\])[A-Za-z]:[\\/][^\"'<>|;:*?\n]+",  # of Windows, with spaces
    r"\\\\[^\s\"'<>|;:*?]+",  # of a server of Windows
    r"(?:file://)?~?(?<![\w./)\]:-])(?:/[\w.@%+=~,-]+){2,}/?",
    r"~[\w.-]*/[\w.@%+=~,/-]+",
    r"(?<![\w./@%+=~-])(?:\.{0,2}/)?(?:[\w.@%+=~-]+/)+[\w.@%+=~-]+\.(?:" + _FILES + r")\b",
)
_FORM: Final = [(kind, re.compile(pattern)) for kind, pattern in _FORMS]
_PATH: Final = re.compile("|".join(f"(?:{pattern})" for pattern in _PATHS))
_ENTRY: Final = re.compile(r"[^;\n]+")
_LINE: Final = re.compile(r"\(\d+\): ")
_PUBLIC: Final = re.compile(
    r"(?:.*?[\\/])?((?:site|dist)-packages[\\/].*|lib[\\/]python\d[\d.]*[\\/].*|python\d\.\d+[\\/].*)"
)
"""The part of a path from an installed package on, which is the same on every machine."""
_COMPILED: Final = re.compile(r"torch(?:inductor|dynamo)")
_FILE: Final = re.compile(rf".+\.(?:{_FILES})")
_HOME: Final = re.compile(r"(?:/home/|/Users/|[A-Za-z]:[\\/]Users[\\/]|/torchinductor_)([\w.@-]+)")
_HOST: Final = re.compile(r"(?i:host_?name|host|node|node_?name|machine)")
_SHARED: Final = frozenset(
    {"root", "user", "users", "ubuntu", "runner", "public", "shared", "default"}
)
_LEAST: Final = 3
"""The shortest word that is hidden everywhere: shorter ones occur within too many others."""

_KEYS: Final = re.compile(
    r"(?i:host_?names?|host|node_?name|machine|user|user_?name|login|home|cwd|argv|args_?list|command"
    r"|cmd_?line|command_?line|paths|executable|trace_?name|trace_?id|job_?(?:name|id)|run_?name"
    r"|process group (?:name|description)|pg_(?:name|desc)|comms id|serial(?:_?number)?|.*uuid.*"
    r"|.*pci_?(?:bus|device|domain)?_?id.*|concrete inputs|environ(?:ment)?|env)"
)
"""Keys under which every text is private, except for harmless values."""
_PLAIN: Final = re.compile(
    r"(?i:[\d\s.,\[\](){}x:e+-]*|true|false|none|null|on|off|yes|no|default_pg|cuda(?::\d+)?|cpu"
    r"|gpu|mps|[a-z,. ]*->[a-z. ]*|float\d*|bfloat16|half|double|u?int\d*|bool|sum|mean|max|min"
    r"|zeros|reflect|constant|replicate|circular|bilinear|nearest|bicubic|floor|trunc|tanh)"
)
"""Values that identify nobody: numbers, booleans, dtypes, modes of operators."""


def is_private_key(key: str) -> bool:
    """Whether the values of a key are private regardless of their form.

    >>> is_private_key("host_name"), is_private_key("Process Group Name"), is_private_key("name")
    (True, True, False)
    """
    return _KEYS.fullmatch(key) is not None


def is_harmless_value(text: str) -> bool:
    """Whether a value identifies nobody: a number, a boolean, a dtype."""
    return _PLAIN.fullmatch(text) is not None


def compile_pattern(text: str) -> Pattern:
    """Returns the compiled regular expression that a user gave.

    Raises:
        UsageError: It is not a valid regular expression.
    """
    try:
        return re.compile(text)
    except re.error as error:
        raise UsageError(f"`{text}` is not a regular expression: {error}") from error


def words_pattern(words: Iterable[str]) -> Pattern | None:
    """Returns a pattern for these words as whole words; None if all are too short or common.

    >>> words_pattern({"jo", "jane"}).pattern
    '(?i)(?<![a-z0-9])(?:jane)(?![a-z0-9])'
    """
    long = {word for word in words if len(word) >= _LEAST and word.lower() not in _SHARED}
    if not long:
        return None
    either = "|".join(re.escape(word) for word in sorted(long, key=lambda w: (-len(w), w)))
    return re.compile(f"(?i)(?<![a-z0-9])(?:{either})(?![a-z0-9])")


def users_and_hosts(key: str, text: str) -> Iterator[tuple[str, str]]:
    """Yields the (kind, name) of users and hosts in a text, to hide them everywhere."""
    for found in _HOME.finditer(text):
        yield "user", found[1]
    if _HOST.fullmatch(key) and not _PLAIN.fullmatch(text):
        yield "host", text
        yield "host", text.partition(".")[0]


def redact(key: str, text: str, hide: Hide, *, hides_names: bool = False) -> str:
    """Returns a text of a trace with its private parts replaced.

    Args:
        key: The text's key; empty if the text is itself a key.
        text: The text, without escapes.
        hide: Returns the replacement of a private part.
        hides_names: Whether names of the user's own files and functions are private, too.

    >>> redact("name", "/data/jo/net.py(3): run", lambda kind, text: kind)
    '/folder/net.py(3): run'
    """
    if is_private_key(key):
        return text if _PLAIN.fullmatch(text) else hide(key.lower(), text)
    if "(" in text:
        text = _ENTRY.sub(lambda found: _frame(found[0], hide, hides_names), text)
    for kind, form in _FORM:
        text = _hide_matches(form, kind, text, hide)
    return _PATH.sub(lambda found: _path(found[0], hide, keeps_base=not hides_names), text)


def _hide_matches(form: Pattern, kind: str, text: str, hide: Hide) -> str:
    return form.sub(lambda found: hide(kind, found[0]), text)


def _frame(entry: str, hide: Hide, hides_names: bool) -> str:
    """Returns a stack entry with private parts replaced, for user code also its names if asked."""
    found = _LINE.search(entry)
    if found is None:
        return entry
    file, line, function = entry[: found.start()], found[0], entry[found.end() :]
    parsed = frame(f"{file.strip()}{line}{function}")
    own = hides_names and parsed is not None and parsed.origin == "user"
    if not own:
        return _path(file, hide, keeps_base=True) + line + function
    return _path(file, hide, keeps_base=False) + line + hide("function", function)


def _path(path: str, hide: Hide, *, keeps_base: bool) -> str:
    """Returns a path with its folders replaced by one word; paths within packages stay."""
    separator = "\\" if "\\" in path and "/" not in path else "/"
    public = _PUBLIC.fullmatch(path)
    if public is not None:
        before = path[: public.start(1)]
        return (_folder(before, hide, separator) if before else "") + public[1]
    origin = frame(f"{path.strip()}(1): f")
    is_relative = not path.startswith(("/", "~", ".", "\\"))
    if origin is not None and origin.origin != "user" and is_relative:
        return path
    folder, cut, base = path.rpartition(separator)
    if cut and not _FILE.fullmatch(base):
        return _folder(path, hide, separator).rstrip(separator)
    told = _folder(folder + cut, hide, separator) if cut else ""
    return told + (base if keeps_base or not base else _hidden_file_name(base, hide))


def _folder(folder: str, hide: Hide, separator: str) -> str:
    """Returns one replacement for folders; for compiled code with a recognisable prefix."""
    if folder in {separator, ""}:
        return folder
    begin = separator if folder.startswith(("/", "\\")) else ""
    bare = folder.rstrip("\\/")
    word = hide("folder", bare)
    if word == bare:
        return folder
    compiled = _COMPILED.search(folder)
    return f"{begin}{compiled[0] + '_' if compiled else ''}{word}{separator}"


def _hidden_file_name(base: str, hide: Hide) -> str:
    name, dot, suffix = base.rpartition(".")
    return f"{hide('file', name)}{dot}{suffix}" if dot else hide("file", base)
