"""A job in S3: a real server on this machine answers as Amazon's does."""

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import fsspec
import pytest
from polars.testing import assert_frame_equal
from tests.installed import needs
from tests.scale.conftest import RANKS
from werkzeug.test import Client

from selftime.errors import UnreadableTrace
from selftime.ingest.load import load
from selftime.scale import Local, survey, view
from selftime.trace import Job, Trace
from selftime.web import PageApp, TracesAtPaths

needs("s3fs")
needs("moto")


@pytest.fixture(scope="module")
def bucket(job: Path) -> Iterator[str]:
    """The address of a bucket with a job in a folder, and with a file that is no trace."""
    moto = import_module("moto.server")
    server = moto.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ENDPOINT_URL", f"http://{host}:{port}")
        patch.setenv("AWS_ACCESS_KEY_ID", "someone")
        patch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
        patch.setenv("AWS_DEFAULT_REGION", "us-east-1")
        system = fsspec.filesystem("s3")
        system.mkdir("bucket")
        for path in job.iterdir():
            system.pipe(f"bucket/run/{path.name}", path.read_bytes())
        system.pipe("bucket/run/notes.txt", b"none")
        yield "s3://bucket"
        system.clear_instance_cache()
    server.stop()


def test_a_folder_is_a_job(bucket: str, job: Path) -> None:
    for place in (f"{bucket}/run", f"{bucket}/run/", bucket):
        found = load(place)
        assert isinstance(found, Job)
        assert list(found.traces) == [f"{bucket}/run/rank{rank}.json" for rank in range(RANKS)]
    here = load(job)
    assert isinstance(here, Job)
    assert_frame_equal(found.view("stragglers"), here.view("stragglers"))


def test_one_file_is_a_trace(bucket: str) -> None:
    assert isinstance(load(f"{bucket}/run/rank0.json"), Trace)


def test_a_pattern_chooses_ranks(bucket: str) -> None:
    for place in (f"{bucket}/**/rank[12].json", f"{bucket}/run/*[12].json"):
        assert [member.rank for member in survey(place).members.values()] == [1, 2]


@pytest.mark.sweep
def test_other_processes_read_it_too(bucket: str, job: Path) -> None:
    assert_frame_equal(view(f"{bucket}/run", "ranks", engine=Local(2)), view(job, "ranks"))


@pytest.mark.sweep
def test_the_page_shows_it(bucket: str) -> None:
    client = Client(PageApp(TracesAtPaths([f"{bucket}/run/"])))
    ids = [one["id"] for one in client.get("/api/traces").get_json()["traces"]]
    assert len(ids) == RANKS
    answer = client.get("/api/job", query_string={".trace": ids[0]})
    assert answer.status_code == 200
    assert len(answer.get_json()["ranks"]) == RANKS


@pytest.mark.parametrize(
    ("place", "told"),
    [
        ("none/run/x.json", "The specified bucket does not exist"),
        ("bucket/none", "there is no such file or folder"),
        ("bucket/run/*.gz", "it matches no file"),
        ("bucket/run/notes.txt", "cannot be read"),
    ],
)
@pytest.mark.sweep(2)
def test_what_is_not_there_is_one_sentence(bucket: str, place: str, told: str) -> None:
    with pytest.raises(UnreadableTrace) as caught:
        load(bucket.replace("bucket", place))
    assert told in str(caught.value)


def test_without_credentials_it_says_so(bucket: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    system = fsspec.filesystem("s3")
    system.clear_instance_cache()
    with pytest.raises(UnreadableTrace, match="Unable to locate credentials"):
        load(f"{bucket}/run/")
    system.clear_instance_cache()
