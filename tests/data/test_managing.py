"""Settings of datasets as people type them."""

from __future__ import annotations

import pytest

from spanlab.base.errors import UsageError
from spanlab.storage.datasets import colour_of


@pytest.mark.parametrize(
    ("typed", "colour"),
    [
        pytest.param("", None, id="the editor's own"),
        pytest.param("#AA3377", "#aa3377", id="digits"),
        pytest.param("#0a8", "#00aa88", id="three digits"),
        pytest.param(" Teal ", "#008080", id="a name"),
        pytest.param("grey", "#808080", id="in British spelling"),
    ],
)
def test_colours_are_taken_as_digits_or_by_name(typed: str, colour: str | None) -> None:
    assert colour_of(typed) == colour


@pytest.mark.parametrize(
    "typed", ["tealish", "008080", "#0080", "#00808g", "rgb(0, 128, 128)", "#"]
)
def test_what_is_no_colour_is_refused_with_what_would_be_right(typed: str) -> None:
    with pytest.raises(UsageError, match="type #rrggbb, such as #008080, or a name such as teal"):
        colour_of(typed)
