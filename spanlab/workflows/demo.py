"""The sample dataset, ready to be reviewed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from spanlab.errors import InputError
from spanlab.workflows.detecting import annotate_dataset
from spanlab.workflows.importing import import_files
from spanlab.workflows.voting import vote_dataset

if TYPE_CHECKING:
    from spanlab.storage import Store

DATASET = "samples"
_SAMPLES = Path(__file__).resolve().parents[2] / "data" / "samples.jsonl"
_PERSONS = ("synthetic-annotator-1", "synthetic-annotator-2", "synthetic-annotator-3")


def prepare_demo(store: Store, on_progress: Callable[[int], None] | None = None) -> int:
    """Import the samples, annotate them offline and let their annotators vote, each only once.

    Args:
        store: the annotation database.
        on_progress: called now and then with the number of items done in the current step.

    Returns:
        The number of sample items made ready; 0 if all had been done before.

    Raises:
        InputError: the samples are not there, as in an installation without the repository.
    """
    summary = next((d for d in store.datasets() if d.name == DATASET), None)
    count = 0
    if summary is None:
        if not _SAMPLES.is_file():
            raise InputError(
                "the samples are not there", file=_SAMPLES, expected="a clone of the repository"
            )
        count = import_files(store, [_SAMPLES], DATASET, on_progress=on_progress).items
    count = max(count, annotate_dataset(store, DATASET, "offline", on_progress=on_progress))
    if count:
        vote_dataset(store, DATASET, _PERSONS, on_progress=on_progress)
    return count
