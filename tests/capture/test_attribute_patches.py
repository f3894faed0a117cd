"""What is replaced for a while is put back, whatever happens in between."""

from typing import Any

import pytest

from selftime.capture.attribute_patches import AttributePatches


class Owner:
    """Something with attributes of its own."""

    def __init__(self, **attributes: Any) -> None:
        vars(self).update(attributes)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(name)


def louder(original: Any) -> Any:
    return lambda: original() + "!"


def test_what_was_replaced_is_put_back() -> None:
    owner, patches = Owner(say=lambda: "hi"), AttributePatches()
    original = owner.say

    patches.wrap_attribute(owner, "say", louder)
    patches.replace_attribute(owner, "new", 1)

    assert (owner.say(), owner.new) == ("hi!", 1)
    patches.restore_all()
    assert vars(owner) == {"say": original}


def test_what_was_replaced_twice_is_put_back_last_first() -> None:
    owner, patches = Owner(say=lambda: "hi"), AttributePatches()
    original = owner.say

    for _ in range(2):
        patches.wrap_attribute(owner, "say", louder)
    assert owner.say() == "hi!!"

    patches.restore_all()
    assert owner.say is original


def test_what_somebody_else_replaced_since_stays() -> None:
    owner, patches = Owner(a=1, b=1), AttributePatches()
    patches.replace_attribute(owner, "a", 2)
    patches.replace_attribute(owner, "b", 2)
    patches.replace_attribute(owner, "c", 2)

    vars(owner)["a"] = 3
    del vars(owner)["c"]
    patches.restore_all()

    assert vars(owner) == {"a": 3, "b": 1}


def test_it_says_what_it_holds_and_can_be_used_again() -> None:
    class Kind:
        say = 1

    patches = AttributePatches()
    for _ in range(2):
        patches.replace_attribute(Kind, "say", 2)
        assert (Kind, "say") in patches
        assert (Kind, "other") not in patches
        patches.restore_all()
        assert Kind.say == 1
        assert (Kind, "say") not in patches


def test_an_error_keeps_nothing_else_from_being_put_back() -> None:
    class Sealed(Owner):
        def __setattr__(self, name: str, value: Any) -> None:
            if vars(self)["sealed"]:
                raise AttributeError("sealed")
            vars(self)[name] = value

    first, sealed, last = Owner(value=1), Sealed(value=1, sealed=False), Owner(value=1)
    patches = AttributePatches()
    for owner in (first, sealed, last):
        patches.replace_attribute(owner, "value", 2)
    vars(sealed)["sealed"] = True

    with pytest.raises(AttributeError, match="sealed"):
        patches.restore_all()

    assert (first.value, sealed.value, last.value) == (1, 2, 1)
    patches.restore_all()
