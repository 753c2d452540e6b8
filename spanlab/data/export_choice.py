"""The choice of what to export: which part of a dataset, and in which format."""

from __future__ import annotations

from spanlab.base.options import OptionModel, option
from spanlab.doors import Export, exports
from spanlab.formats.registry import known_formats
from spanlab.schema import Annotation, PairStep, Record, Status
from spanlab.scoring.answers import MOST_PAIRS
from spanlab.scoring.averitec_scores import repeat_pairs_in_turn

REPORT = "report"


FORMATS: dict[str, Export] = {
    **{name: entry.export for name, entry in known_formats().items() if entry.export is not None},
    REPORT: Export(
        "HTML report",
        "Figures, highlights and evidence in one file to mail or print.",
        "html",
        "text/html",
    ),
    **exports(),
}
CSV_FORMATS = ("csv", "claims")
# No text: previewed as another one.
BINARY = frozenset((*(name for name, entry in known_formats().items() if entry.whole), *exports()))


class ExportChoice(OptionModel):
    """Which part of a dataset goes into a file, and in which format; an empty choice is all."""

    annotators: tuple[str, ...] = option(
        (),
        title="Annotators",
        help="Only this annotator's labels; Mu-SHROOM holds one's. Repeatable.",
        flags="--annotator",
    )
    states: tuple[Status, ...] = option(
        (),
        title="Status",
        help="Only annotations in this state: done, failed, skipped or not-annotated (also items "
        "that lack one). Repeatable.",
        flags="--state",
        titles={state: state.replace("-", " ") for state in Status},
        placeholder="all",
    )
    languages: tuple[str, ...] = option(
        (),
        title="Languages",
        help="Only items in this language. Repeatable.",
        flags="--language",
        placeholder="all",
    )
    labels: tuple[str, ...] = option(
        (),
        title="Labels",
        help='Only spans with this label, "" for those without; the items stay. Repeatable.',
        flags="--label",
        titles={"": "(no label)"},
        placeholder="all",
    )
    format: str = option(
        "spanlab",
        title="Format",
        help=f"{', '.join(FORMATS)}. huggingface is a zip that load_dataset reads once unpacked, "
        "report one HTML file to mail. csv, parquet and huggingface leave out evidence, rejected "
        "spans and traces. Without it the file's ending says which: .jsonl, .csv, .parquet, .zip "
        "or .html.",
    )
    repeat_pairs: bool = option(
        False,
        title="Repeat questions and answers up to ten",
        help="With --format averitec: repeat questions and answers in turn up to ten.",
    )
    raw: bool = option(
        False,
        title="Cells as they are, for programs",
        help="csv and claims as programs read them: without the apostrophes that keep "
        "spreadsheets from running cells that look like formulas.",
    )
    known_items: bool = option(
        True,
        title="Check items, too",
        help="Write check items, too: the gold items that are hidden in people's queues.",
    )

    def part_of(self, record: Record) -> Record | None:
        """Return the part of a record that goes into the file; None if nothing does."""
        if self.languages and record.item.lang not in self.languages:
            return None
        annotations = record.annotations
        if self.states:
            annotations = tuple(
                annotation for annotation in annotations if annotation.status in self.states
            )
            unfinished = len(record.annotations) < max(len(self.annotators), 1)
            if not annotations and not (unfinished and Status.NOT_ANNOTATED in self.states):
                return None
        if self.labels:
            annotations = tuple(map(self._keep_labels, annotations))
        if self.repeat_pairs:
            annotations = tuple(map(_repeat_pairs, annotations))
        return (
            record if annotations is record.annotations else _with_annotations(record, annotations)
        )

    def _keep_labels(self, annotation: Annotation) -> Annotation:
        spans = tuple(span for span in annotation.spans if (span.label or "") in self.labels)
        hard = annotation.hard
        if hard is not None:
            hard = tuple(
                part
                for part in hard
                if any(span.start < part.end and part.start < span.end for span in spans)
            )
        return annotation.model_copy(update={"spans": spans, "hard": hard})


def _repeat_pairs(annotation: Annotation) -> Annotation:
    pairs = [step for step in annotation.trace if isinstance(step, PairStep)]
    repeats = repeat_pairs_in_turn(pairs, MOST_PAIRS)[len(pairs) :]
    return annotation.model_copy(update={"trace": (*annotation.trace, *repeats)})


def _with_annotations(record: Record, annotations: tuple[Annotation, ...]) -> Record:
    return record.model_copy(update={"annotations": annotations})
