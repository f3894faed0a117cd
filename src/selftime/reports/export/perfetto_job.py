"""Exports the traces of all ranks of a job to one Perfetto file, with times on a common clock."""

from pathlib import Path
from typing import Final

from selftime.reports.export.export_format import Export, ExportOptions, ExportResult
from selftime.reports.export.job_clocks import clocks_of_job
from selftime.reports.export.perfetto import PerfettoPacketSequence, write
from selftime.reports.trace_file import open_file_writer
from selftime.trace import Job


def write_job(job: Job, output: Path, options: ExportOptions) -> ExportResult:
    """Writes all traces of a job to one Perfetto file, one rank after the other.

    Raises:
        UsageError: `output` is a folder, or has an unsupported suffix.
        SelftimeError: The file cannot be written.
    """
    clocks = clocks_of_job(job)
    result, first_track = ExportResult(), 1
    with open_file_writer(output, next(iter(job.traces), "")) as write_bytes:
        for number, (path, trace) in enumerate(job.traces.items(), 1):
            label_prefix = f"{job.members[path].label}: "
            sequence = PerfettoPacketSequence(
                trace,
                write_bytes,
                sequence_id=number,
                first_track=first_track,
                process_prefix=label_prefix,
                to_file_times=clocks.to_file_times_by_path[path],
            )
            sequence.write(options)
            first_track = sequence.tracks.next_track_number
            for counts, rank_counts in (
                (result.written, sequence.result.written),
                (result.left_out, sequence.result.left_out),
            ):
                for what, count in rank_counts.items():
                    counts[what] = counts.get(what, 0) + count
    result.size = write_bytes.size
    result.written["traces"] = len(job)
    clocks.record_unaligned(result)
    return result


PERFETTO: Final = Export(
    "perfetto",
    "Perfetto: every slice shown, those that overlap too",
    ".pftrace",
    write,
    write_job=write_job,
)
