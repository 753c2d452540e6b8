"""Arguments that name files, datasets and columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from spanlab.errors import InputError, UsageError
from spanlab.schema import storable
from spanlab.workflows.import_files import files_named

_TEXT_MOST = 400_000


def files(patterns: Sequence[str]) -> list[Path]:
    """Return the files that paths and globs name; see ``files_named``."""
    return files_named(patterns)


@contextmanager
def versions_as_files(arguments: Sequence[str | None]) -> Iterator[list[str]]:
    """Give arguments that name a version (DATASET@NAME) as files, while the block runs."""
    from spanlab.storage import Store
    from spanlab.workflows.exporting import export_dataset

    with TemporaryDirectory() as folder:
        given = [each or "" for each in arguments]
        for at, name in enumerate(given):
            if "@" in name and not are_files([name]):
                given[at] = str(Path(folder, f"{at}.jsonl"))
                with Store.open() as store:
                    export_dataset(store, name, Path(given[at]))
        yield given


def are_files(source: Sequence[str]) -> bool:
    """Return whether arguments mean files; a single name that is no file means a dataset."""
    if len(source) > 1:
        return True
    name = source[0]
    looks_like_path = "/" in name or "\\" in name or any(mark in name for mark in "*?[")
    return looks_like_path or Path(name).exists() or Path(name).suffix in {".jsonl", ".json"}


def text_of(path: Path) -> str:
    """Return the text of a file of at most 400,000 bytes.

    Raises:
        InputError: there is no such file, it is larger, or no UTF-8.
    """
    try:
        with path.open("rb") as file:
            text = file.read(_TEXT_MOST + 1)
        if len(text) > _TEXT_MOST:
            raise InputError(f"{path}: larger than {_TEXT_MOST:,} bytes")
        return storable(text.decode("utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: {error}") from error


def mapping(pairs: Sequence[str]) -> dict[str, str] | None:
    """Return ``field=column`` pairs as a dict, None if there are none.

    Raises:
        UsageError: a pair has no equals sign.
    """
    found: dict[str, str] = {}
    for pair in pairs:
        field, sign, column = pair.partition("=")
        if not sign or not field or not column:
            raise UsageError(f"--column wants field=column, such as answer=response, not {pair!r}")
        found[field] = column
    return found or None


def two_sides(arguments: Sequence[str]) -> tuple[list[Path], list[Path]]:
    """Split the arguments of `score` into predictions and gold.

    Two arguments are one side each. A shell that expands globs passes more: then the sides part
    where the directory changes, if that happens exactly once.

    Raises:
        UsageError: there is no such single place; the globs have to be quoted.
        InputError: a path does not exist, or a glob matches nothing.
    """
    if len(arguments) < 2:
        raise UsageError(
            "score wants PRED and GOLD, for example: spanlab score pred.jsonl val.jsonl"
        )
    folders = [Path(argument).parent for argument in arguments]
    cuts = [at for at in range(1, len(folders)) if folders[at] != folders[at - 1]]
    if len(arguments) == 2:
        cuts = [1]
    if len(cuts) != 1:
        raise UsageError(
            "it is not clear which files are PRED and which are GOLD; quote the globs: "
            "spanlab score 'pred/*.jsonl' 'gold/*.jsonl'"
        )
    return files(arguments[: cuts[0]]), files(arguments[cuts[0] :])
