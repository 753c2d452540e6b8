"""Messages that stand alone in their rows: what became of them is said."""

from pathlib import Path

import pytest

from spanlab.formats import ReadOptions, read

ASKED = '{"role": "user", "content": "What is it?"%s}\n'
SAID = '{"role": "assistant", "content": "It is Oslo."%s}\n'


@pytest.mark.parametrize(
    ("text", "items", "said"),
    [
        (
            ASKED % ', "session_id": 1' + SAID % ', "session_id": 1' + ASKED % ', "session_id": 2',
            1,
            "1 user message without an answer left out",
        ),
        (
            ASKED % ', "id": "a", "parent_id": null'
            + SAID % ', "id": "b", "parent_id": "a"'
            + ASKED % ', "id": "c", "parent_id": "b"',
            1,
            "1 user message without an answer left out",
        ),
        (
            (ASKED % "" + SAID % "") * 2,
            2,
            "no field says to which chat they belong: they are read as one chat",
        ),
    ],
)
def test_what_became_of_messages_is_said_once(
    tmp_path: Path, text: str, items: int, said: str
) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text(text, "utf-8")
    remarks: list[str] = []
    assert len(list(read(path, ReadOptions(on_warning=remarks.append)))) == items
    assert [said in remark for remark in remarks] == [True]
