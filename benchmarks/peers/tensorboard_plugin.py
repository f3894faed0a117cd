"""What the old TensorBoard plugin does before it shows a trace: read it, and make all its views.

    python plugin.py TRACE.json[.gz]

What a worker process of its loader does, in this process. Runs in an environment of its own.
"""

import json
import sys
import tempfile
import time

from torch_tb_profiler.profiler.data import RunProfileData
from torch_tb_profiler.profiler.run_generator import RunGenerator


def main() -> None:
    begin = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        data = RunProfileData.parse("worker", None, sys.argv[1], folder)
    loaded = time.perf_counter()
    profile = RunGenerator("worker", None, data).generate_run_profile()
    told = {
        "load_s": loaded - begin,
        "answers_s": time.perf_counter() - loaded,
        "rows": len(data.op_list_groupby_name),
        "views": [view.name for view in profile.views],
    }
    print(json.dumps(told))


if __name__ == "__main__":
    main()
