"""Cards of datasets: where one can be had, how it is read and what is scored on it; no data.

A package brings cards by an entry point of the group ``spanlab.cards`` whose object is the path of
a TOML file like ``cards.toml`` beside this one; ``--cards FILE`` names one.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import file_digest
from itertools import islice
from pathlib import Path
from typing import Annotated, Final, Literal

from pydantic import Field, ValidationError

from spanlab import doors
from spanlab.base.errors import InputError, UsageError, unreadable
from spanlab.base.fields import FrozenModel
from spanlab.base.inbound import foreign
from spanlab.base.options import problem
from spanlab.formats import ReadOptions, read
from spanlab.formats.contexts import ContextFiles
from spanlab.output.figures import counted
from spanlab.output.tables import ResultTable, columns_of
from spanlab.schema import Annotation, AnnotatorKind, Item, Name, Record
from spanlab.scoring.spans import METRICS
from spanlab.text.labels import vote

_PACKAGE: Final = Path(__file__).parents[1]  # where the samples lie
_SPANS: Final = ("iou", "corr", "max_iou")
_VERDICTS: Final = ("macro_f1", "balanced_accuracy", "accuracy", "auroc")
_ANSWERS: Final = (*_VERDICTS[:3], "auroc", "average_precision", "f1")


class DatasetCard(FrozenModel):
    """The description of a dataset: where it can be had, how it is read, and its metrics.

    ``files`` are patterns below a folder of ``--data``, where leading folders may be missing;
    ``sha256`` are hashes by file name, of the files that were looked at. ``columns`` says of a
    table in which column of theirs our field is. ``contexts`` is a pattern of folders with passages
    by item id. Of the items ``first`` so many count, those of whose ``meta`` every field of
    ``where`` has one of its values. Only spans with one of ``labels``, or a finer one
    (``Unwanted.Intrinsic``), count as hallucinated; without any, all do. ``verdicts`` maps finer
    ones to coarser ones. ``reference`` is the gold annotation, or the majority of the people. The
    first of ``metrics`` is tested. ``builtin`` comes with spanlab.
    """

    name: Name
    title: str
    licence: str
    source: str
    level: Literal["spans", "claims", "answers", "steps"] = "spans"
    files: tuple[str, ...] = ()
    sha256: Mapping[str, str] = {}
    reader: str = "auto"
    columns: Mapping[str, str] = {}
    contexts: str = ""
    where: Mapping[str, tuple[str, ...]] = {}
    labels: tuple[str, ...] = ()
    verdicts: Mapping[str, str] = {}
    reference: Literal["gold", "people"] = "gold"
    split: str = ""
    first: Annotated[int, Field(ge=1)] | None = None
    metrics: tuple[str, ...] = ()
    submission: Literal["mushroom", "averitec", "verdicts"] | None = None
    builtin: bool = False
    about: str = ""

    @property
    def scores(self) -> tuple[str, ...]:
        """The metrics, the one that is tested first."""
        by_level = {"spans": _SPANS, "answers": _ANSWERS}
        return self.metrics or by_level.get(self.level, _VERDICTS[:3])

    def with_metric(self, metric: str) -> DatasetCard:
        """Return the card with another metric tested.

        Raises:
            UsageError: it is none of this dataset.
        """
        metrics = tuple(METRICS) if self.level == "spans" else _VERDICTS[:1]
        if metric not in metrics:
            raise UsageError(f"{self.name} has no test of {metric!r} (it has {', '.join(metrics)})")
        other_metrics = (name for name in self.scores if name != metric)
        return self.model_copy(update={"metrics": (metric, *other_metrics)})


@dataclass(frozen=True)
class BenchItem:
    """An item without annotations, its reference annotation, and the annotations of people."""

    item: Item
    reference: Annotation
    people: tuple[Annotation, ...]

    @property
    def record(self) -> Record:
        """The item with its reference and people, as scorers read labels from it."""
        return Record(item=self.item, annotations=(self.reference, *self.people))


@dataclass(frozen=True)
class FoundDataset:
    """A card with the files that were found for it; ``changed`` are those of another version."""

    card: DatasetCard
    files: tuple[Path, ...]
    contexts: tuple[Path, ...]
    sha256: Mapping[str, str]

    @property
    def lacks_passages(self) -> bool:
        """Whether the card names folders of passages, and none was found."""
        return bool(self.card.contexts) and not self.contexts

    @property
    def changed(self) -> tuple[str, ...]:
        """Names of files whose hash is not that of the card."""
        sha256 = self.card.sha256
        return tuple(name for name, sha in self.sha256.items() if sha256.get(name, sha) != sha)

    def items(self, limit: int | None = None) -> list[BenchItem]:
        """Return the items that have a reference.

        Args:
            limit: at most so many.

        Raises:
            InputError: a file is wrong, an id occurs twice, or no item is left.
        """
        at_most = min((n for n in (limit, self.card.first) if n is not None), default=None)
        bench_items = list(islice(self._items(), at_most))
        ids = [bench_item.item.id for bench_item in bench_items]
        if not ids or len(set(ids)) < len(ids):
            repeated_id = next((name for name in ids if ids.count(name) > 1), None)
            problem = (
                "no item has a reference" if repeated_id is None else "two items have the same id"
            )
            raise InputError(f"{self.card.name}: {problem}", found=repeated_id)
        return bench_items

    def _items(self) -> Iterator[BenchItem]:
        contexts = [ContextFiles(folder) for folder in self.contexts]
        options = ReadOptions(
            format=self.card.reader,
            columns=self.card.columns or None,
            on_warning=lambda remark: None,
        )
        for file in self.files:
            for record in read(file, options):
                if self._is_meant(record.item):
                    for source in contexts:
                        record = source.add(record)  # noqa: PLW2901 - with its passages
                    yield from self._with_reference(record)

    def _is_meant(self, item: Item) -> bool:
        return all(str(item.meta.get(key)) in values for key, values in self.card.where.items())

    def _with_reference(self, record: Record) -> Iterator[BenchItem]:
        annotations = [self._map_labels(annotation) for annotation in record.finished]
        people = tuple(a for a in annotations if a.kind is AnnotatorKind.PERSON)
        if self.card.reference == "people":
            references = [vote(record.item, people, name="people")] if people else []
        else:
            references = [a for a in annotations if a.kind is AnnotatorKind.GOLD]
        if self.card.level == "spans":
            references = [a for a in references if not a.is_verdict_only]
        for reference in references[:1]:
            yield BenchItem(record.item, reference, people)

    def _map_labels(self, annotation: Annotation) -> Annotation:
        changes: dict[str, object] = {}
        if self.card.labels:
            spans = [s for s in annotation.spans if _is_below(s.label, self.card.labels)]
            changes = {"spans": tuple(spans), "hard": None}
        if self.card.verdicts:
            changes["claims"] = tuple(
                claim.model_copy(update={"verdict": self.verdict(claim.verdict)})
                for claim in annotation.claims
            )
        return annotation.model_copy(update=changes)

    def verdict(self, verdict: str | None) -> str | None:
        """Return a verdict in the words of this dataset, which may have fewer."""
        return verdict and self.card.verdicts.get(verdict, verdict)


def cards(files: Iterable[Path] = ()) -> dict[str, DatasetCard]:
    """Return all cards by name: spanlab's, those of other packages, and those of TOML files.

    Raises:
        UsageError: a file is no TOML, a card is wrong, or two have the same name.
    """
    paths = [Path(__file__).with_name("cards.toml")]
    for offer in doors.offers("cards"):
        with foreign(f"the cards of {offer.name!r} cannot be loaded", UsageError):
            paths.append(Path(offer.load()))
    by_name: dict[str, DatasetCard] = {}
    for path in (*paths, *files):
        for card in _read(path):
            if card.name in by_name:
                raise UsageError(f"{path}: a dataset entry named {card.name!r} already exists")
            by_name[card.name] = card
    return by_name


def find(card: DatasetCard, roots: Sequence[Path]) -> FoundDataset | None:
    """Find a dataset's files.

    Args:
        card: the dataset's card, with names or patterns of its files.
        roots: folders below which they are looked for; the first that has any counts.

    Returns:
        The dataset with its files; None if there are none.

    Raises:
        UsageError: a folder is none.
    """
    for root in (_PACKAGE,) if card.builtin else roots:
        if not root.is_dir():
            raise UsageError(f"--data: {root} is not a folder")
        files = [path for pattern in card.files for path in _below(root, pattern)]
        if files:
            folders = _below(root, card.contexts) if card.contexts else []
            sums = {path.name: _sha256(path) for path in files}
            return FoundDataset(card, tuple(files), tuple(folders), sums)
    return None


def list_cards(cards_known: Iterable[DatasetCard], roots: Sequence[Path]) -> ResultTable:
    """Return a table of cards: how many files of each were found, and its source."""
    rows = []
    for card in cards_known:
        dataset = find(card, roots)
        state = "missing" if dataset is None else counted(len(dataset.files), "file")
        if dataset is not None and dataset.lacks_passages:
            state += ", no passages"
        if dataset is not None and dataset.changed:
            state += f", {len(dataset.changed)} of another version"
        rows.append((card.name, state, card.level, card.split, card.licence, card.source))
    return ResultTable(
        key="cards",
        title="Datasets",
        columns=tuple(
            columns_of("text", "Name", "Found", "Level", "Split", "Licence", "Where it can be had")
        ),
        rows=tuple(rows),
    )


def _read(path: Path) -> list[DatasetCard]:
    try:
        with path.open("rb") as stream:
            content = tomllib.load(stream)
        return [DatasetCard.model_validate(fields) for fields in content["dataset"]]
    except (OSError, tomllib.TOMLDecodeError) as error:
        raise unreadable(path, error) from None
    except (KeyError, TypeError):
        raise UsageError(f"{path}: a file of cards has tables [[dataset]]") from None
    except ValidationError as error:
        raise UsageError(f"{path}: {problem(error)}") from None


def _below(root: Path, pattern: str) -> list[Path]:
    """Return files that match a pattern below a folder, which may itself be part of the pattern."""
    parts = Path(pattern).parts
    for at in range(len(parts)):
        if matches := sorted(root.glob("/".join(parts[at:]))):
            return matches
    return []


def _is_below(label: str | None, labels: Iterable[str]) -> bool:
    return label is not None and any(f"{label}.".startswith(f"{above}.") for above in labels)


def _sha256(path: Path) -> str:
    with path.open("rb") as stream:
        return file_digest(stream, "sha256").hexdigest()
