"""What copies' names mean, as each vendor's recorder writes them."""

import pytest

from selftime import names


@pytest.mark.parametrize(
    ("name", "route"),
    [
        ("Memcpy HtoD (Pageable -> Device)", ("HtoD", "pageable")),
        ("Memcpy HtoD (Pinned -> Device)", ("HtoD", "pinned")),
        ("Memcpy DtoH (Device -> Pageable)", ("DtoH", "pageable")),
        ("Memcpy DtoH (Device -> Pinned)", ("DtoH", "pinned")),
        ("Memcpy DtoD (Device -> Device)", ("DtoD", None)),
        ("Memcpy PtoP (Device -> Device)", ("PtoP", None)),
        ("Memcpy HtoD (Host -> Device)", ("HtoD", None)),
        ("CopyHostToDevice", ("HtoD", None)),
        ("CopyDeviceToDevice", ("DtoD", None)),
        ("hipMemcpyDtoH", ("DtoH", None)),
        ("urEnqueueUSMMemcpy(M2D)", ("HtoD", None)),
        ("urEnqueueUSMMemcpy(D2M)", ("DtoH", None)),
        ("Memset (Device)", ("fill", None)),
        ("Memset (Unknown)", ("fill", None)),
        ("hipMemsetD32Async", ("fill", None)),
        ("urEnqueueUSMFill", ("fill", None)),
        ("Memcpy", (None, None)),
        ("", (None, None)),
    ],
)
def test_route(name: str, route: tuple[str | None, str | None]) -> None:
    assert names.copy_route(name) == route
