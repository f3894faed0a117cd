"""The salvage of damaged text, and the words of msgspec that it relies on."""

import msgspec
import pytest

from selftime.ingest.damage.event_recovery import recover_events
from selftime.ingest.damage.repair_json import repair_json
from selftime.ingest.events.event_types import value_decoder

A = b'{"ph": "X", "name": "a"}'
B = b'{"ph": "X", "name": "b"}'


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b'{"a": 1}, {', "trailing characters (byte 9)"),
        (b'{"a": 1} \n x', "trailing characters (byte 12)"),
        (b'{"a": "x', "truncated"),
        (b'{"a": [1, ', "truncated"),
        (b'{"a": 1.', "(byte 8)"),
        (b'{"a": "b"c"}', "(byte 9)"),
    ],
)
def test_the_decoder_says_where_a_text_is_damaged(text: bytes, words: str) -> None:
    with pytest.raises(msgspec.DecodeError) as caught:
        value_decoder.decode(text)
    assert words in str(caught.value)


@pytest.mark.parametrize("last", [True, False])
@pytest.mark.parametrize(
    ("text", "rest"),
    [
        (b"%b,\n%b]}" % (A, B), b"}"),
        (b'%b,\n%b],\n "traceName": "t"}' % (A, B), b',\n "traceName": "t"}'),
        (b'%b,%b], "devices": [{"id": 0}]}' % (A, B), b', "devices": [{"id": 0}]}'),
        (b"%b %b,]" % (A, B), b""),
    ],
)
def test_the_end_of_the_array(text: bytes, rest: bytes, last: bool) -> None:
    found = recover_events(text, is_last_chunk=last)
    assert [event["name"] for event in found.objects] == ["a", "b"]
    assert found.is_list_ended
    assert text[found.unread_offset :] == rest


def test_a_cut_event_is_left_for_the_next_chunk() -> None:
    text = b'%b, {"ph": "X", "args": {"list": [%b, {"ph"' % (A, B)
    found = recover_events(text, is_last_chunk=False)
    assert [event["name"] for event in found.objects] == ["a"]
    assert text[found.unread_offset :].startswith(b'{"ph": "X", "args"')
    assert not found.faults


def test_a_cut_event_is_lost_at_the_end_of_the_file() -> None:
    text = b'%b, {"ph": "X", "args": {"list": [%b, {"ph"' % (A, B)
    found = recover_events(text, is_last_chunk=True)
    assert [event["name"] for event in found.objects] == ["a"]
    assert [(what, lost) for what, _, lost, _ in found.faults] == [
        ("the file ends inside an event", 1)
    ]


def test_events_that_begin_with_an_unknown_key() -> None:
    text = b'%b, {"of": "tomorrow", "ph": "X"}, %b, x' % (A, B)
    assert len(recover_events(text, is_last_chunk=True).objects) == 3


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        (rb'{"a": "C:\new\table\U"}', {"a": r"C:\new\table\U"}),
        (rb'{"a": "C:\\new\\U", "b": "\q"}', {"a": r"C:\new\U", "b": r"\q"}),
        (rb'{"a": "line\nline\q"}', {"a": "line\nline\\q"}),
        (rb'{"a": "\ud83d\ude00 \ud83d"}', {"a": "\U0001f600 \\ud83d"}),
        (b'{"a": "\xff \xc3\xa9"}', {"a": "\\xff \xe9"}),
        (
            b'{"a": [+1, .5, 007, 0x1F, -0.5, 5., 1e5]}',
            {"a": [1, "0.5", 7, 31, "-0.5", "5.0", "1e5"]},
        ),
        (
            b'{"a": nan, "b": [-inf, N/A], "c": "nan, "}',
            {"a": None, "b": [None, None], "c": "nan, "},
        ),
        (b'{"a": [1, 2,], }', {"a": [1, 2]}),
        (b'{"a": [+1e3, 5.e2]}', {"a": ["1e3", "5.0e2"]}),
        (b'{"a": "b "c" d", "e": "f"}', {"a": 'b "c" d', "e": "f"}),
        (b'{"a": {"b": "c="d""}}', {"a": {"b": 'c="d"'}}),
    ],
)
def test_what_was_meant(text: bytes, meant: object) -> None:
    mended, fault = repair_json(text)
    assert value_decoder.decode(mended) == meant
    assert fault


@pytest.mark.parametrize("text", [A, b'{"a": "C:\\\\U", "b": [1, 2.5]}', b"[]"])
def test_sound_text_is_left_alone(text: bytes) -> None:
    assert repair_json(text) == (text, ())
