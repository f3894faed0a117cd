"""Parse a trace with a JSON library into its own objects or tree: the limit of reading.

    python parse.py json|orjson|simdjson TRACE.json

Nothing is linked, nested or even looked at. simdjson keeps the file's text and a tape of its
structure; the others make Python objects.
"""

import json
import sys
import time
from importlib import import_module
from pathlib import Path
from typing import Any


def parsed(library: str, path: Path) -> Any:
    if library == "simdjson":
        return import_module("simdjson").Parser().load(str(path))
    if library == "orjson":
        return import_module("orjson").loads(path.read_bytes())
    with path.open(encoding="utf-8") as file:
        return json.load(file)


def main() -> None:
    begin = time.perf_counter()
    document = parsed(sys.argv[1], Path(sys.argv[2]))
    loaded = time.perf_counter()
    print(json.dumps({"load_s": loaded - begin, "events": len(document["traceEvents"])}))


if __name__ == "__main__":
    main()
