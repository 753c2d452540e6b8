"""Datasets of the database in a benchmark: written into its folder, each with its own entry."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from spanlab.base.errors import UsageError
from spanlab.bench.cards import cards
from spanlab.data.exporting import export_dataset
from spanlab.schema import AnnotatorKind
from spanlab.storage import Store
from spanlab.storage.datasets import summary_of


def write_datasets(store: Store, names: Iterable[str], output: Path) -> Mapping[str, Any]:
    """Write datasets as they are now below a benchmark's folder, and return fields of its plan.

    Gold labels are the reference; where a dataset has none, the majority of its people is. Where
    they judge whole answers and mark no place, detectors are scored on answers, too.

    Args:
        store: the annotation database.
        names: at least one dataset or version.
        output: the folder of the table.

    Raises:
        NotFoundError: there is no such dataset.
        UsageError: nobody has annotated one of them: there is nothing to compare detectors with.
    """
    known, entries = cards(), dict[str, str]()
    folder = output / "data"
    for name in names:
        summary = summary_of(store, name)
        has_gold = bool(summary.names_of(AnnotatorKind.GOLD))
        if not has_gold and not summary.names_of(AnnotatorKind.PERSON):
            raise UsageError(f"{name!r} has no gold labels, and no person has annotated it")
        plain = "".join(char if char.isalnum() or char in "-_" else "_" for char in name)
        entry = f"{plain}-here" if plain in known else plain
        if entry in entries:
            raise UsageError(f"{name!r} would be written as {entry!r}, like another dataset")
        fields = {
            "name": entry,
            "title": name,
            "licence": "licence not stated",
            "source": "this database",
        }
        kind = AnnotatorKind.GOLD if has_gold else AnnotatorKind.PERSON
        fields["reference"] = "gold" if has_gold else "people"
        said = (a for record in store.records(name) for a in record.finished if a.kind is kind)
        if all(annotation.is_verdict_only for annotation in said):
            fields["level"] = "answers"
        lines = [f"{field} = {json.dumps(text)}" for field, text in fields.items()]
        entries[entry] = "\n".join(["[[dataset]]", *lines, f'files = ["{entry}.jsonl"]', ""])
        folder.mkdir(parents=True, exist_ok=True)
        export_dataset(store, name, folder / f"{entry}.jsonl")
    path = folder / "cards.toml"
    path.write_text("\n".join(entries.values()), encoding="utf-8")
    return {"data": [folder], "cards": [path], "datasets": [{"name": each} for each in entries]}
