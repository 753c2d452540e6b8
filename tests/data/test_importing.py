"""What an import of several files says of them together."""

from __future__ import annotations

from pathlib import Path

import pytest

from spanlab.data.importing import import_files
from spanlab.storage import Store


@pytest.mark.parametrize(
    ("second", "n_again"),
    [
        (("Where?,It is red.,no", "Who?,It is red.,no"), 1),  # to another question it is another
        (("Where?,It is blue.,no",), 0),
    ],
)
def test_answers_that_stand_in_several_files_are_told_of(
    store: Store, tmp_path: Path, second: tuple[str, ...], n_again: int
) -> None:
    """Two people's files without ids would be twice as many items, each half labelled."""
    files = [tmp_path / "anna.csv", tmp_path / "ben.csv"]
    rows = ("Where?,It is red.,yes", "Where?,It is red.,yes"), second
    for file, lines in zip(files, rows, strict=True):
        file.write_text("\n".join(("question,answer,hallucinated", *lines)), encoding="utf-8")
    done = import_files(store, files, "d")
    assert done.items == 2 + len(second)
    told = [warning for warning in done.warnings if "stood in a file before" in warning]
    assert [warning[: len("1 answer")] for warning in told] == ["1 answer"] * n_again
