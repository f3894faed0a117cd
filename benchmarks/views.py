"""How long every view takes on a trace, the first time and again.

    python benchmarks/views.py TRACE.json[.gz]

The first time includes what a view keeps with the trace for itself and for others; views run in the
order in which `selftime.views.VIEWS` has them, each on what the ones before left.
"""

import argparse
from time import perf_counter

import selftime
from selftime.views import VIEWS


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("trace")
    path = parser.parse_args().trace
    begin = perf_counter()
    trace = selftime.load(path)
    if not isinstance(trace, selftime.Trace):
        parser.error(f"`{path}` is a folder; name a trace")
    print(f"{trace}: opened in {perf_counter() - begin:.2f} s")
    print(f"{'view':20}{'rows':>10}{'first s':>10}{'again s':>10}")
    for name in VIEWS:
        times = []
        for _ in range(2):
            begin = perf_counter()
            rows = trace.view(name).height
            times.append(perf_counter() - begin)
        print(f"{name:20}{rows:>10}{times[0]:>10.2f}{times[1]:>10.2f}")


if __name__ == "__main__":
    main()
