"""What the old TensorBoard plugin (torch-tb-profiler 0.4.3) says of a trace, as JSON.

    python figures.py TRACE.json[.gz]

Runs in an environment of its own that holds the plugin. Times are in us as the plugin has them.
"""

import gzip
import json
import sys
from pathlib import Path
from typing import Any

from torch_tb_profiler.profiler.data import RunProfileData

STEP = (
    "kernel",
    "memcpy",
    "memset",
    "communication",
    "runtime",
    "data_loading",
    "cpu",
    "other",
    "total",
)
"""The plugin's costs of a step, in its order."""


def main() -> None:
    data = Path(sys.argv[1]).read_bytes()
    document = json.loads(gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data, strict=False)
    profile = RunProfileData.from_json("worker", None, document)
    print(json.dumps(figures(profile), default=float))


def figures(profile: RunProfileData) -> dict[str, Any]:
    """Steps, kernels, operators and the GPU's summary."""
    return {
        "steps": [
            {"step": name, **dict(zip(STEP, costs.costs, strict=True))}
            for name, costs in zip(profile.steps_names, profile.steps_costs, strict=True)
        ],
        "kernels": kernels(profile),
        "operators": [
            {
                "name": row.name,
                "count": row.calls,
                "cpu_time_total": row.host_duration,
                "self_cpu_time_total": row.self_host_duration,
                "device_time_total": row.device_duration,
                "self_device_time_total": row.self_device_duration,
            }
            for row in profile.op_list_groupby_name
        ],
        "summary": summary(profile),
    }


def kernels(profile: RunProfileData) -> list[dict[str, Any]]:
    table = profile.kernel_stat
    if table is None:
        return []
    wanted = ("count", "sum", "mean", "max", "min", "blocks_per_sm", "occupancy")
    rows = ((name, row) for name, row in table.iterrows())
    return [
        {"name": name, **{column: row[column] for column in wanted if column in table.columns}}
        for name, row in rows
    ]


def summary(profile: RunProfileData) -> dict[str, Any]:
    parser = profile.gpu_metrics_parser
    told = {
        "utilization": parser.gpu_utilization,
        "sm_efficiency": parser.avg_approximated_sm_efficiency_per_device,
        "occupancy": parser.avg_occupancy_per_device,
        "tensor_cores": profile.tc_ratio,
    }
    return {
        name: {device: value for device, value in enumerate(values or []) if value is not None}
        for name, values in told.items()
    }


if __name__ == "__main__":
    main()
