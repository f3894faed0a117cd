from selftime.testing import sketch
from selftime.trace import Trace
from selftime.views.matches import matches

US = 1_000
TRACE = sketch("""
    cpu 1 | aaa b  aa   c
    gpu 7 |   kkk
    a = aten::Conv2d
    b = aten::mm
    c = convert
    k = conv<float>
""")


def test_nothing_recorded_and_nothing_asked_match_nothing() -> None:
    assert matches(Trace(), text="a").is_empty()
    assert matches(TRACE).is_empty()


def test_names_that_contain_a_text_whatever_the_case_most_time_first() -> None:
    rows = matches(TRACE, text="CONV").select("name", "category", "count", "total").rows()

    assert rows == [
        ("aten::Conv2d", "cpu_op", 2, 50 * US),
        ("conv<float>", "kernel", 1, 30 * US),
        ("convert", "cpu_op", 1, 10 * US),
    ]


def test_the_longest_of_a_name_is_told() -> None:
    [row] = matches(TRACE, text="conv2d").select("start", "duration", "id").rows()

    assert row == (0, 30 * US, 0)


def test_a_text_is_no_pattern() -> None:
    assert matches(TRACE, text="conv<").height == 1
    assert matches(TRACE, text="c.nv").is_empty()


def test_the_next_and_the_previous_in_time() -> None:
    def starts(**options: int | str) -> list[int]:
        found = matches(TRACE, text="conv", by="slice", **options)  # type: ignore[arg-type]  # words
        return [start // US for start in found["start"]]

    assert starts() == [0, 20, 70, 120]
    assert starts(start=30 * US) == [70, 120]
    assert starts(slice=1) == [70, 120]
    assert starts(slice=3, way="before") == [20, 0]
    assert starts(start=60 * US, way="before", top=1) == [20]
