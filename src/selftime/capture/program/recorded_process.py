"""Records one process of a program, from its import of torch to its end.

The root process, in which `selftime run` runs the program, calls `finish` itself. Any other
process, started by the program or forked from it, uses an exit handler.
"""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from selftime.capture.child_signals import child_signals_held_back
from selftime.capture.ledger.run_ledger import RunLedger
from selftime.capture.program.after_import import after_import, cancel_after_import
from selftime.capture.program.early_log import EarlyTimes
from selftime.capture.program.end_facts import cpu_thread_count, facts_at_end, machine_at_end
from selftime.capture.program.process_end import (
    ImmediateExit,
    SigtermHandler,
    exit_reason,
    is_loader_worker,
    is_loader_worker_starting,
    is_out_of_memory,
    run_at_process_end,
    skip_destructors_at_exit,
)
from selftime.capture.program.run_channel import ProcessReport, RunChannel
from selftime.capture.program.triggers import (
    FileTrigger,
    RecordingTrigger,
    SignalTrigger,
    parse_trigger,
)
from selftime.capture.recorder.run_options import RunOptions

if TYPE_CHECKING:
    from selftime.capture.recorder.other_profilers import OtherProfilers
    from selftime.capture.recorder.recorder import Recorder
    from selftime.capture.steps import StepDetector, StepSource


class RecordedProcess:
    """Records this process, and its forked children, from their import of torch on."""

    def __init__(
        self,
        options: RunOptions,
        channel: RunChannel | None = None,
        user_packages: Callable[[], tuple[str, ...]] = tuple,
        *,
        is_root: bool = False,
        ledger: RunLedger | None = None,
        early_times: EarlyTimes | None = None,
    ) -> None:
        self.options = options
        self.channel = channel
        """The channel for reports to `selftime run`; None if child processes are not recorded."""
        self.user_packages = user_packages
        self.ledger = ledger
        """The wall-time ledger of this process; if not given, in memory until the first step."""
        self._early_times = early_times
        """What is known of the process from before selftime was loaded."""
        self.recorder: Recorder | None = None
        self.steps: StepDetector | None = None
        self.trigger: RecordingTrigger | None = None
        self.failure: str | None = None  # why the process cannot be recorded, if so
        self.messages: list[str] = []  # for the user, printed by the program's first process
        self._root_pid = os.getpid() if is_root else None
        """Id of the program's first process; None if this object was made in another one."""
        self._exit_hook_pid: int | None = None  # of the process whose exit handler is registered
        self._immediate_exit = ImmediateExit(self.finish)
        self._rank: int | None = None
        self._other_profilers: OtherProfilers | None = None
        self._has_recorded = False
        """Whether a recording was started in this process, or in its parent."""

    def watch(self) -> None:
        if self._is_root and self.ledger is not None:
            self.ledger.ledger.file.on_creation = self._send_root_report
            self._immediate_exit.attach()
        elif self.ledger is None:
            self.ledger = self._ledger_in_memory()
        if self.channel is not None and hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._start_in_forked_child)
        after_import("torch", self._on_torch_import)

    @property
    def abandoned(self) -> bool:
        """Returns whether this process was forked during a recording, and so is not recorded."""
        return self.recorder is not None and self.recorder.abandoned

    def finish_program(self, error: BaseException | None) -> None:
        """Ends the recording where the program's code has ended, by an exception or by None."""
        self.finish(exit_reason(error), may_measure=not is_out_of_memory(error))

    @child_signals_held_back(drops=True)
    def finish(self, reason: str | None, *, may_measure: bool = False) -> None:
        """Ends and writes the recording, with why it ends early; measures the CPU if it may."""
        self._immediate_exit.detach()
        with self._kept_from_program():
            cancel_after_import("torch")
            if self.recorder is not None:
                self.recorder.finish(reason)
        with self._kept_from_program():
            if self.steps is not None:
                self.steps.detach()
            if self.trigger is not None:
                self.trigger.end()
        with self._kept_from_program():
            if self.ledger is not None:
                facts = facts_at_end(self.recorder, self.ledger, self._rank) if may_measure else {}
                self.ledger.finish(reason, machine_at_end(self.recorder) | facts)
                self._report_unwritten_ledger(self.ledger)
        if self._is_root:
            with self._kept_from_program():
                self._send_root_report()

    @contextmanager
    def _kept_from_program(self) -> Iterator[None]:
        """Keeps an exception of selftime's own code from the program, which goes on."""
        try:
            yield
        except Exception as error:  # noqa: BLE001 - as above
            if self.recorder is None:
                self.failure = f"selftime failed: {type(error).__name__}: {error}"
            else:
                self.recorder.fail(error)

    def _report_unwritten_ledger(self, ledger: RunLedger) -> None:
        """Tells the user why the ledger was not written, unless the recorder said the same."""
        failure = ledger.ledger.file.failure
        if failure is None or self.options.notify is None:
            return
        if self.recorder is None or self.recorder.reason != failure:
            self.options.notify(f"the ledger of the run could not be written: {failure}")

    def show_messages(self) -> None:
        """Shows the user what there is to say of the recordings."""
        if self.recorder is not None:
            self.recorder.messages.show()

    def process_report(self) -> ProcessReport | None:
        """Returns what was recorded of this process, or its ledger alone; None if nothing was."""
        recorder, ledger = self.recorder, None if self.ledger is None else self.ledger.path
        if recorder is None:
            if self.failure is None and ledger is None:
                return None
            return ProcessReport(os.getpid(), reason=self.failure, ledger=ledger)
        return ProcessReport(
            process=os.getpid(),
            rank=self._rank,
            traces=tuple(recorder.traces),
            source=recorder.source_label,
            steps_seen=recorder.steps_seen,
            steps_recorded=recorder.steps_recorded,
            partial=recorder.partial,
            reason=recorder.reason,
            is_left_out=recorder.left_out.is_left_out,
            messages=tuple(self.messages),
            ledger=ledger,
            step_ns_by_kind={} if self.ledger is None else self.ledger.ledger.kinds.time_by_kind(),
            cpu_threads=cpu_thread_count() if recorder.traces else None,
        )

    @property
    def _is_root(self) -> bool:
        return os.getpid() == self._root_pid

    def _on_torch_import(self) -> None:
        if not self._is_root:
            self._collect_user_messages()
        try:
            with nullcontext() if self.ledger is None else self.ledger.own_work():
                self._start_watching_steps()
        except Exception as error:  # noqa: BLE001 - the program's `import torch` must go on
            kind = type(error).__name__
            self.failure = f"steps cannot be detected in this PyTorch: {kind}: {error}"
        if self.channel is not None and not self._is_root:
            self.channel.write_report(ProcessReport(os.getpid(), reason=self.failure))

    def _start_watching_steps(self) -> None:
        from selftime.capture.recorder.recorder import Recorder  # noqa: PLC0415 - imports torch
        from selftime.capture.recorder.step_watch import send_steps_to  # noqa: PLC0415 - likewise
        from selftime.capture.steps import StepDetector, StepSource  # noqa: PLC0415 - likewise

        recorder = Recorder(self.options, self.user_packages)
        self.sigterm_handler = SigtermHandler(self.finish, recorder.own_work.postpone)
        recorder.on_recording_start = self._on_recording_start
        recorder.on_done = self._on_recorder_done
        run = self._start_ledger()
        recorder.ledger = run.ledger
        steps = StepDetector(
            recorder.on_step_boundary if self._is_root else self._on_step_boundary,
            recorder.check_limits,
            on_unusual_step=recorder.note_unusual_step,
            is_recording=lambda: recorder.recording,
            recorder_work=recorder.recorder_work,
            ledger=run.ledger,
        )
        steps.attach()
        steps.call_before_new_steps(self._forget_source)
        steps.call_in_recorded_gap(partial(recorder.begin_other_work, StepSource.LOOP))
        run.pass_stacks_to(steps.observe_stack)
        run.pass_evaluation_stacks_to(steps.observe_evaluation_stack)
        steps.call_for_other_work(recorder.begin_other_work, recorder.step_after_recording)
        self.recorder, self.steps = recorder, steps
        recorder.program.has_torch_worked = steps.has_torch_worked
        recorder.program.on_failure = steps.detach
        recorder.program.may_interrupt = steps.may_interrupt
        if not self.options.is_light:
            steps.call_after_long_work_without_steps(self._record_part_without_steps)
            self._make_way_for_other_profilers(recorder)
        send_steps_to(recorder)
        self._start_trigger(recorder)

    def _forget_source(self) -> None:
        """Has the recording begin anew with the next step, which is of another loop."""
        if self.recorder is not None:
            self.recorder.source = None

    def _start_ledger(self) -> RunLedger:
        if self.ledger is None:
            self.ledger = self._ledger_in_memory()
        if self._is_root and self.ledger.is_started:
            self.ledger.write()
        else:  # most processes of a program make no step
            self.ledger.ledger.file.on_creation = self._on_ledger_creation
            self.ledger.start_at_first_step()
        return self.ledger

    def _ledger_in_memory(self) -> RunLedger:
        """Begins the ledger of a process that the program started, and that may make steps."""
        ledger = RunLedger(self.options.folder, self.user_packages)
        ledger.keep_results(self.options)
        if self._early_times is not None:
            ledger.take_over(self._early_times)
        if not is_loader_worker_starting():
            with ledger.own_work():
                ledger.prepare()
                ledger.start()
        return ledger

    def _start_trigger(self, recorder: "Recorder") -> None:
        """Starts to listen for requests to record, if the user chose the option `--trigger`."""
        if self.options.trigger is None:
            return
        self.trigger = parse_trigger(self.options.trigger, self.options.folder)
        recorder.wants_recording = self.trigger.take_request
        if self._is_root:
            self._notify_user_now(self.trigger.begin(recorder.state_as_json))
        else:
            recorder.wants_recording = self._start_trigger_at_first_step

    def _start_trigger_at_first_step(self) -> bool:
        """Starts to listen for requests at the first step; returns whether one has come."""
        if self.recorder is None or self.trigger is None:
            return False
        self.recorder.wants_recording = self.trigger.take_request
        instructions = self.trigger.begin(self.recorder.state_as_json)
        if not isinstance(self.trigger, FileTrigger) or os.environ.get("RANK", "0") == "0":
            self._notify_user_now(instructions)
        return self.trigger.take_request()

    def _notify_user_now(self, sentence: str) -> None:
        """Prints a message to the user now, not at the end of the program."""
        if self._is_root and self.options.notify is not None:
            self.options.notify(sentence)
        else:  # `--quiet` as well: nobody else says how to ask
            sys.stderr.write(f"selftime: {sentence}\n")
            sys.stderr.flush()

    def _start_in_forked_child(self) -> None:
        """Starts a new recording in a forked child, unless its parent was recording."""
        with self._kept_from_program():
            self._watch_forked_child()

    def _watch_forked_child(self) -> None:
        recorder, steps = self.recorder, self.steps
        if self.ledger is not None:
            self.ledger.abandon()
        self.ledger = self._early_times = None
        if recorder is None or steps is None:  # the parent has not imported torch
            self.ledger = self._ledger_in_memory()
            return
        if isinstance(self.trigger, SignalTrigger):
            self.trigger.end()
        self.trigger = None  # its threads do not exist in the child
        if self._has_recorded:
            skip_destructors_at_exit()
        if recorder.recording or recorder.abandoned:
            steps.is_off = True
            recorder.abandon_in_forked_child()
            return
        steps.detach()
        if is_loader_worker_starting():
            self.recorder = self.steps = None
            return
        self._collect_user_messages()
        self._start_watching_steps()

    def _collect_user_messages(self) -> None:
        """Stores messages of this process, which the program's first process will print."""
        self.messages = []
        self.options = replace(self.options, notify=self.messages.append)

    def _on_step_boundary(self, source: "StepSource") -> None:
        if self.recorder is not None and self._may_make_steps():
            self.recorder.on_step_boundary(source)

    def _record_part_without_steps(self) -> None:
        if self.recorder is not None and self._may_make_steps():
            self.recorder.record_part_without_steps()

    def _may_make_steps(self) -> bool:
        """Returns False in a worker of a DataLoader, which is then watched no longer."""
        if self._is_root or not is_loader_worker():
            return True
        if self.steps is not None:
            self.steps.detach()
        return False

    def _make_way_for_other_profilers(self, recorder: "Recorder") -> None:
        from selftime.capture.recorder.other_profilers import OtherProfilers  # noqa: PLC0415 - imports torch

        if self._other_profilers is not None:  # of the process that this one was forked from
            self._other_profilers.detach()
        self._other_profilers = OtherProfilers(self._yield_to_profiler, recorder)
        recorder.program.other_profilers = self._other_profilers
        self._other_profilers.attach()

    def _yield_to_profiler(self, profiler: str) -> bool:
        with self._kept_from_program():
            if self.recorder is not None and self.recorder.pause_for_profiler(profiler):
                if self.steps is not None:
                    self.steps.stop_loop_search()
                return True
        return False

    def _on_recording_start(self) -> None:
        from selftime.capture.facts.machine import rank_and_world  # noqa: PLC0415 - imports torch

        self._rank, _ = rank_and_world()
        self._has_recorded = True
        self.sigterm_handler.install()
        self._act_at_process_end()

    def _on_ledger_creation(self) -> None:
        """Sends a first report of a process that has made a step, since it may be killed."""
        from selftime.capture.facts.machine import rank_and_world  # noqa: PLC0415 - imports torch

        self._act_at_process_end()
        self._rank, _ = rank_and_world()
        report = self.process_report()
        if self.channel is not None and report is not None:
            self.channel.write_report(report)

    def _act_at_process_end(self) -> None:
        """Has the recording and the ledger of a process other than the first one ended with it."""
        if not self._is_root and self._exit_hook_pid != os.getpid():
            self._exit_hook_pid = os.getpid()
            run_at_process_end(self._on_process_end)

    def _on_recorder_done(self) -> None:
        self.sigterm_handler.remove()
        if self.steps is None or self.recorder is None:
            return
        if self.recorder.wants_recording is None:
            self.steps.call_after_recording(self.recorder.step_after_recording)
            self.steps.expect_no_recording()
        if self.recorder.needs_no_modules:  # the ledger goes on, so the other wrappers stay
            self.steps.unwrap_modules()
        self._send_process_report()
        if self._is_root:
            self._send_root_report()

    def _on_process_end(self) -> None:
        if self._exit_hook_pid == os.getpid():  # not in a forked child, which inherits the handler
            self.finish_program(sys.exc_info()[1] or getattr(sys, "last_value", None))
            with self._kept_from_program():
                self._send_process_report()

    def _send_process_report(self) -> None:
        """Sends this process's report to `selftime run` now, since it may be killed later."""
        if not self._is_root:
            self.show_messages()
        report = self.process_report()
        if self.channel is None or self._is_root or report is None or report.source is None:
            return
        if report.traces or report.reason:
            self.channel.write_report(report)

    def _send_root_report(self) -> None:
        """Leaves a report of the first process for who has to answer if it ends at once."""
        report = self.process_report()
        if self.channel is not None and self.channel.is_guarded and report is not None:
            waiting = () if self.recorder is None else self.recorder.messages.waiting
            self.channel.write_report(replace(report, messages=(*report.messages, *waiting)))
