"""What copies' names mean, as each vendor's recorder writes them."""

import pytest

from selftime import names


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("Memcpy HtoD (Pageable -> Device)", ("HtoD", "pageable")),
        ("Memcpy HtoD (Pinned -> Device)", ("HtoD", "pinned")),
        ("Memcpy HtoD (Managed -> Device)", ("HtoD", "managed")),
        ("Memcpy DtoH (Device -> Pageable)", ("DtoH", "pageable")),
        ("Memcpy DtoH (Device -> Pinned)", ("DtoH", "pinned")),
        ("Memcpy HtoH (Pinned -> Pageable)", ("HtoH", "pinned")),
        ("Memcpy DtoD (Device -> Device)", ("DtoD", None)),
        ("Memcpy DtoD (Device -> Pinned)", ("DtoD", None)),
        ("Memcpy PtoP (Device -> Device)", ("PtoP", None)),
        ("Memcpy DtoA (Device -> Array)", ("DtoA", None)),
        ("Memcpy HtoD (Host -> Device)", ("HtoD", None)),
        ("Memcpy HtoD (Unknown -> Device)", ("HtoD", None)),
        ("CopyHostToDevice", ("HtoD", None)),
        ("CopyDeviceToDevice", ("DtoD", None)),
        ("hipMemcpyDeviceToHost", ("DtoH", None)),
        ("hipMemcpyDtoH", ("DtoH", None)),
        ("HtoD", ("HtoD", None)),
        ("urEnqueueUSMMemcpy(M2D)", ("HtoD", None)),
        ("zeCommandListAppendMemoryCopy(D2M)", ("DtoH", None)),
        ("copy_D2H", ("DtoH", None)),
        ("Memset (Device)", (None, None)),
        ("Memcpy", (None, None)),
        ("Host to Device", (None, None)),
        ("HtoDevice", (None, None)),
        ("", (None, None)),
    ],
)
def test_direction_and_memory(name: str, told: tuple[str | None, str | None]) -> None:
    assert names.memcpy_kind(name) == told
