"""The line that says what the fields of files became."""

from __future__ import annotations

from pathlib import Path

from spanlab.data.import_preview import preview_import
from spanlab.data.importing import describe_fields


def test_many_fields_of_one_object_are_one_part_of_the_line() -> None:
    people = {f"annotations.{n:02d}": "labels" for n in range(90)}
    mixed = people | {"annotations.07": "labels and meta", "run": "meta", "id": "id"}
    assert describe_fields(mixed) == (
        "annotations.00 and 88 more of annotations → labels; "
        "annotations.07 → labels and meta; id → id; run → meta"
    )
    assert describe_fields({"a.x": "label", "a.y": "label"}) == "a.x → label; a.y → label"


def test_what_equals_the_id_by_chance_is_not_the_id(tmp_path: Path) -> None:
    file = tmp_path / "ranks.jsonl"
    line = '{"id": "%s", "question": "How many?", "answer": "Some.", "rank": 7, "code": "%s"}\n'
    file.write_text(line % (7, 7) + line % (8, 8))
    fields = preview_import([file]).fields
    assert (fields["rank"], fields["code"], fields["id"]) == ("meta", "meta", "id")


def test_of_our_own_lines_nothing_is_left_out_and_every_field_is_what_it_is_called() -> None:
    samples = Path(__file__).resolve().parents[2] / "data" / "samples.jsonl"
    fields = preview_import([samples]).fields
    assert fields == {
        "id": "id",
        "lang": "language",
        **{name: name for name in ("question", "answer", "passages", "process", "meta")},
        "annotations": "annotations",
    }
