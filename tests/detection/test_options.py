"""Options of detectors come as texts, and arrive as what their fields hold."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from typing import Literal

import pytest
from pydantic import JsonValue

from spanlab.base.errors import UsageError
from spanlab.base.options import Option, options_in
from spanlab.detection import DetectorEntry, DetectorOptions, DetectorSpec, entries, entry_of
from spanlab.detection.selection import DetectorSelection
from spanlab.detection.specifications import specifications

NEEDED = {"encoder": "model", "encoder-nli": "model", "encoder-nli-claims": "model"}
OF_A_FORM = {
    "memory_as_of": "2026-01-31",
    "labels": "date: a wrong day; name",
    "fitted": "mine@0123abcd",
}
ONLY_WITH = {"agreeing": "samples=25"}  # of so many samples so many agree


def other_values(field: Option) -> tuple[JsonValue, ...]:
    """Values of an option that are not its default."""
    if field.choices:
        return tuple(choice for choice in field.choices if choice != field.default)
    if field.kind == "flag":
        return (not field.default,)
    if field.kind == "integer":
        return (int(field.default if isinstance(field.default, int) else field.low or 0) + 1,)
    if field.kind == "number":
        return (0.375,)
    return (OF_A_FORM.get(field.name, "some,text 4"),)


def written() -> Iterator[object]:
    """Every other value of every option of every detector, as a command line writes it."""
    for entry in entries():
        for field in options_in(entry.options):
            for value in other_values(field):
                text = str(value).lower() if isinstance(value, bool) else str(value)
                option = f"{field.name}={text}"
                yield pytest.param(entry.name, option, value, id=f"{entry.name}-{option}")


@pytest.mark.parametrize(("detector", "option", "value"), list(written()))
def test_every_option_of_every_detector_is_set_on_the_command_line(
    detector: str, option: str, value: JsonValue
) -> None:
    name = option.partition("=")[0]
    more = [f"{NEEDED[detector]}=x"] if detector in NEEDED and NEEDED[detector] != name else []
    more += [ONLY_WITH[name]] if name in ONLY_WITH else []
    model = None if not entry_of(detector).asks_models else "scripted"
    chosen = DetectorSelection.checked(
        {"detectors": (detector,), "model": model or "", "option": [*more, option]}
    )
    (spec,) = specifications(chosen, {})
    assert isinstance(spec, DetectorSpec)
    assert spec.options[name] == value
    assert type(spec.options[name]) is type(value)
    # What the detector is built with.
    built = entry_of(detector).options.model_validate(spec.options)
    assert getattr(built, name) == (date(2026, 1, 31) if name == "memory_as_of" else value)


class ManyKinds(DetectorOptions):
    """Kinds of values that no detector of ours has yet."""

    one_of: Literal[1, "auto", False] | None = "auto"
    sizes: tuple[int, ...] = ()
    names: tuple[str, ...] | None = ()
    plain: str = ""


@pytest.mark.parametrize(
    ("option", "text", "value"),
    [
        pytest.param("one_of", "1", 1, id="number"),
        pytest.param("one_of", "false", False, id="boolean"),
        pytest.param("one_of", "none", None, id="none"),
        pytest.param("sizes", "3, 4", [3, 4], id="list with commas"),
        pytest.param("sizes", "[3, 4]", [3, 4], id="list as JSON"),
        pytest.param("sizes", "3", [3], id="list of one"),
        pytest.param("sizes", "", [], id="empty list"),
        pytest.param("names", "ann,ben", ["ann", "ben"], id="list of texts"),
        pytest.param("plain", "none", "none", id="a text stays a text"),
        pytest.param("plain", "[4]", "[4]", id="also one that looks like a list"),
    ],
)
def test_a_text_stands_for_the_value_that_the_option_takes(
    option: str, text: str, value: JsonValue
) -> None:
    entry = DetectorEntry(name="many", what="", needs="", options=ManyKinds)
    (read,) = entry.checked({option: text}).values()
    assert read == value
    assert type(read) is type(value)


def test_what_no_reading_fits_is_refused_as_it_was_written() -> None:
    entry = DetectorEntry(name="many", what="", needs="", options=ManyKinds)
    with pytest.raises(UsageError, match="option 'one_of' of 'many' is '3': it should be 1"):
        entry.checked({"one_of": "3"})
