"""A dataset as Hugging Face's ``datasets`` reads it: a folder with its card, in a ZIP file.

``unzip mine.zip -d mine`` and ``load_dataset("mine")``, or upload the folder to the Hub. Every line
has every field, and the card declares their types, so that no type is guessed from empty lists.
"""

from __future__ import annotations

import json
import zipfile
from collections import Counter
from collections.abc import Iterable
from typing import Any, BinaryIO

from pydantic_core import to_json

from spanlab.doors import Export
from spanlab.formats.known.analysis_table import (
    COLUMNS,
    LISTS,
    SAID,
    annotation_columns,
    item_columns,
)
from spanlab.formats.reader import FormatEntry, WrittenDataset
from spanlab.schema import UNDETERMINED, Record

_DATA = "data/train.jsonl"
_TIME = (1980, 1, 1, 0, 0, 0)  # the same records give the same bytes
_TYPES = {str: "string", float: "float64", int: "int64", bool: "bool"}
_FEATURES: dict[str, Any] = {
    **{name: LISTS.get(name, str) for name in COLUMNS if name not in (*SAID, "meta")},
    "annotations": [{name: LISTS.get(name, str) for name in (*SAID, "responses")}],
    "meta": str,
}
_CARD = """
# {title}

{items:,} answers of language models, with the characters that are hallucinated as annotators marked
them. Written by spanlab.

| annotator | kind | items annotated |
| --- | --- | --- |
{annotators}

`start` and `end` are offsets into `answer` in Unicode code points, `start` inclusive, `end`
exclusive; `prob` in [0, 1] is how likely the characters are hallucinated (for a vote: the share of
annotators that marked them). `hallucinated` is the verdict on the whole answer; without spans it is
`answer_hallucinated`, which says nothing of the place. `status` tells *done* without spans from
*failed* and *skipped*.
`meta` is JSON, as are responses to what was asked of each span (`attributes`) and of each answer
(`responses`).
"""


def write_hub(records: Iterable[Record], stream: BinaryIO, dataset: WrittenDataset) -> int:
    """Write records as such a zip; returns how many."""
    count = 0
    languages: Counter[str] = Counter()
    annotators: Counter[tuple[str, str]] = Counter()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        with archive.open(_member(_DATA), "w", force_zip64=True) as lines:
            for record in records:
                columns = [annotation_columns(annotation) for annotation in record.annotations]
                lines.write(to_json({**item_columns(record.item), "annotations": columns}) + b"\n")
                count += 1
                languages[record.item.lang] += 1
                annotators.update((a.annotator, a.kind.value) for a in record.annotations)
        rows = "\n".join(
            f"| {_plain(name)} | {kind} | {n:,} |" for (name, kind), n in annotators.items()
        )
        text = _CARD.format(
            title=_plain(dataset.title), items=count, annotators=rows or "| none | | |"
        )
        archive.writestr(_member("README.md"), f"---\n{_front(languages)}\n---\n{text}")
    return count


def _member(name: str) -> zipfile.ZipInfo:
    member = zipfile.ZipInfo(name, _TIME)
    member.compress_type = zipfile.ZIP_DEFLATED
    return member


def _front(languages: Iterable[str]) -> str:
    """Return what the card says to machines; JSON is YAML, too."""
    codes = sorted({lang.partition("-")[0] for lang in languages} - {UNDETERMINED})
    front = {
        **({"language": codes} if codes else {}),
        "tags": ["hallucination-detection"],
        "configs": [{"config_name": "default", "data_files": _DATA}],
        "dataset_info": {"features": [_feature(*item) for item in _FEATURES.items()]},
    }
    return "\n".join(f"{key}: {json.dumps(value)}" for key, value in front.items())


def _feature(name: str, kind: Any) -> dict[str, object]:
    if isinstance(kind, list):
        return {"name": name, "list": [_feature(*item) for item in kind[0].items()]}
    return {"name": name, "dtype": _TYPES[kind]}


def _plain(text: str) -> str:
    """Return a name as one line of Markdown in which nothing is markup."""
    return "".join(f"\\{c}" if c in "\\`*_{}[]()<>#+!|&" else c for c in " ".join(text.split()))


FORMAT = FormatEntry(
    name="huggingface",
    title="Hugging Face",
    whole=write_hub,
    endings=(".zip",),
    export=Export(
        "Hugging Face",
        "A zip with JSONL and dataset card; unpacked, load_dataset reads it.",
        "zip",
        "application/zip",
    ),
    order=200,
)
