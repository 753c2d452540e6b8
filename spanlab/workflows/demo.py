"""The sample dataset, ready for a detector and to be reviewed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from spanlab.detectors import spec_of
from spanlab.workflows.importing import import_files
from spanlab.workflows.requesting import request_of
from spanlab.workflows.runs import RunRequest
from spanlab.workflows.voting import vote_dataset

if TYPE_CHECKING:
    from spanlab.storage import Store

DATASET = "samples"
_SAMPLES = Path(__file__).resolve().parents[1] / "samples.jsonl"
_PERSONS = ("synthetic-annotator-1", "synthetic-annotator-2", "synthetic-annotator-3")
_VOTE = "vote"


def prepare_samples(store: Store, on_progress: Callable[[int], None] | None = None) -> None:
    """Import the samples and let their annotators vote, each only once.

    Args:
        store: the annotation database.
        on_progress: called now and then with the number of items done in the current step.
    """
    summary = next((d for d in store.datasets() if d.name == DATASET), None)
    if summary is None:
        import_files(store, [_SAMPLES], DATASET, on_progress=on_progress)
    if summary is None or _VOTE not in {each.name for each in summary.annotators}:
        vote_dataset(store, DATASET, _PERSONS, name=_VOTE, on_progress=on_progress)


def detection_of_samples() -> RunRequest:
    """Return the run that marks spans in the samples, for a job."""
    return request_of(DATASET, [spec_of("offline")])
