"""Queries that answer real questions, for whoever begins to ask a trace in SQL."""

from typing import Final, NamedTuple


class ExampleQuery(NamedTuple):
    """A question, and the query that answers it."""

    question: str
    text: str
    chart: str = ""
    """How the page draws the answer: `bar`, `line` or `scatter`, and two columns; empty for a
    table alone."""


EXAMPLES: Final = (
    ExampleQuery(
        "Which kernels take most of the device's time?",
        """select name, count(*) as calls, sum(duration) as total_ns
from slices
where category = 'kernel'
group by name
order by total_ns desc
limit 15""",
        "bar,name,total_ns",
    ),
    ExampleQuery(
        "Which operators take most of the host's time themselves?",
        """select name, count(*) as calls, sum(self) as self_ns
from slices
where category = 'cpu_op'
group by name
order by self_ns desc
limit 15""",
        "bar,name,self_ns",
    ),
    ExampleQuery(
        "How long does each step take?",
        """select step, start, time as step_ns, loading as loading_ns, busy as busy_ns
from steps
order by start""",
        "bar,step,step_ns",
    ),
    ExampleQuery(
        "Which lines of the program launch most kernels?",
        """select l.file, l.line, count(*) as kernels, sum(k.duration) as kernels_ns
from slices k
join call_args c on c.id = k.launch
join tables.lines l on l.id = c.operator
where k.category = 'kernel'
group by l.file, l.line
order by kernels desc
limit 20""",
    ),
    ExampleQuery(
        "How long after its launch does a kernel begin, by stream?",
        """select d.stream, count(*) as kernels,
    avg(k.start - c.start) as behind_ns, sum(k.duration) as busy_ns
from slices k
join device_args d on d.id = k.id
join slices c on c.id = k.launch
where k.category = 'kernel'
group by d.stream
order by busy_ns desc""",
    ),
    ExampleQuery(
        "Do the longest kernels fill the device?",
        """select k.name, d.occupancy, d.warps_per_sm, d.registers, k.duration as duration_ns
from slices k
join device_args d on d.id = k.id
where k.category = 'kernel' and d.occupancy is not null
order by k.duration desc
limit 500""",
        "scatter,occupancy,duration_ns",
    ),
    ExampleQuery(
        "Why does the device wait?",
        """select cause, sum(count) as gaps, sum(duration) as idle_ns
from idle
group by cause
order by idle_ns desc""",
        "bar,cause,idle_ns",
    ),
    ExampleQuery(
        "Which shapes is an operator called with?",
        """select s.name, a.input_shapes, count(*) as calls, sum(s.duration) as total_ns
from slices s
join op_args a on a.id = s.id
where s.name like 'aten::%mm%' or s.name like 'aten::%conv%'
group by s.name, a.input_shapes
order by total_ns desc
limit 30""",
    ),
    ExampleQuery(
        "How does the device's memory grow?",
        """select time as time_ns, allocated as allocated_bytes, reserved as reserved_bytes
from memory_curve
where device_type <> 'CPU'
order by time""",
        "line,time_ns,allocated_bytes",
    ),
    ExampleQuery(
        "What did the device copy, and how fast?",
        """select direction, sum(count) as copies, sum(bytes) as total_bytes,
    sum(time) as total_ns, sum(bytes) / sum(time) as gb_per_s
from copies
group by direction
order by total_ns desc""",
    ),
    ExampleQuery("Which tables and views are there?", "show tables"),
)
"""Examples that hold for any trace; a trace without a device has no rows for some."""
