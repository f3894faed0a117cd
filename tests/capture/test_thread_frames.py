"""Tests that stacks of threads are read while a collection frees what locks the interpreter."""

import gc
import subprocess
import sys
import threading

from selftime.capture.thread_frames import frames_of_threads

GARBAGE = """
import gc, sys, threading
from selftime.capture.thread_frames import frames_of_threads

class Holder:
    pass

def make():
    holder = Holder()
    holder.own, holder.local = holder, threading.local()
    holder.local.value = 1

def nested(depth):
    return frames_of_threads() if not depth else nested(depth - 1)

gc.set_threshold(20, 1, 1)
for _ in range(300):
    for _ in range(15):
        make()
    nested(30)
print("done", gc.isenabled())
"""


def test_a_collection_that_frees_locals_of_threads_holds_nothing_up() -> None:
    command = [sys.executable, "-c", GARBAGE]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)  # noqa: S603 - our own
    assert ended.stdout.strip() == "done True", ended.stderr


def test_each_thread_has_its_frame_and_a_disabled_collection_stays_so() -> None:
    gc.disable()
    try:
        frames = frames_of_threads()
        assert not gc.isenabled()
    finally:
        gc.enable()
    own = frames[threading.get_ident()]
    while own.f_back is not None and own.f_code.co_filename != __file__:
        own = own.f_back
    assert own.f_code.co_filename == __file__
