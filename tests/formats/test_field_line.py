"""The line that says what the fields of files became."""

from __future__ import annotations

from spanlab.data.importing import describe_fields


def test_many_fields_of_one_object_are_one_part_of_the_line() -> None:
    people = {f"annotations.{n:02d}": "labels" for n in range(90)}
    mixed = people | {"annotations.07": "labels and meta", "run": "meta", "id": "id"}
    assert describe_fields(mixed) == (
        "annotations.00 and 88 more of annotations → labels; "
        "annotations.07 → labels and meta; id → id; run → meta"
    )
    assert describe_fields({"a.x": "label", "a.y": "label"}) == "a.x → label; a.y → label"
