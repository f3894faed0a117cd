"""Any drawing of a program on several threads, streams and devices."""

from hypothesis import strategies as st

from selftime.testing import sketch
from selftime.trace import Trace

LETTERS = """
    s = cudaStreamSynchronize
    w = cudaStreamWaitEvent
    d = enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__
    g = Python GC
    p = ProfilerStep#1
    q = ProfilerStep#2
    k = aten::mm
    m = ncclDevKernel_AllReduce
    o = gloo:all_reduce
"""
LANES = (
    *("mark 1", "mark 2", "mark 3", "cpu 1", "call 1", "python 1", "call 2", "cpu 2", "cpu 3"),
    *("gpu 7", "gpu 8", "gpu 1.7", "copy 7"),
)


@st.composite
def traces(draw: st.DrawFn) -> Trace:
    """Nested, overlapping slices on several threads, streams and devices."""
    drawn = draw(st.lists(st.tuples(st.sampled_from(LANES), st.text("swdgpqkmo  ", max_size=24))))
    return sketch(LETTERS + "\n".join(f"{lane} | {text}" for lane, text in drawn))
