"""Datasets at Hugging Face's Hub: read as ``hf://ORGANISATION/NAME``, and written (extra ``hub``).

HF_TOKEN, HF_ENDPOINT and HF_HOME count as everywhere; files that were fetched before are not
fetched again while they are the same at the Hub.

What is written is a folder in a ZIP file: ``unzip mine.zip -d mine`` and ``load_dataset("mine")``,
or upload the folder to the Hub. Every line has every field, and the card declares their types, so
that no type is guessed from empty lists.
"""

from __future__ import annotations

import json
import os
import re
import zipfile
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final

from pydantic_core import to_json

from spanlab.base.errors import InputError, UsageError, missing_package
from spanlab.base.inbound import foreign
from spanlab.formats.known.analysis_table import (
    annotation_columns,
    item_columns,
)
from spanlab.schema import UNDETERMINED, Record

if TYPE_CHECKING:
    from huggingface_hub import HfApi


PREFIX: Final = "hf://"
_REPOSITORY: Final = re.compile(r"[A-Za-z0-9_][\w.-]*/[A-Za-z0-9_][\w.-]*", re.ASCII)
# A dataset often is there in several forms; those that come first are read.
_FORMS: Final = ((".parquet",), (".arrow",), (".jsonl", ".ndjson"), (".csv", ".tsv"), (".json",))


def fetch_dataset(address: str) -> list[Path]:
    """Return the files of a dataset at the Hub as files here.

    Args:
        address: ``hf://ORGANISATION/NAME``, maybe with ``@REVISION``, and with the path of a file
            or a folder of it behind that.

    Raises:
        UsageError: the address is none, or ``huggingface_hub`` is not installed.
        InputError: the Hub has no such dataset for us, or it has no file that can be read.
    """
    owner, _, remainder = address.removeprefix(PREFIX).removeprefix("formats/").partition("/")
    name, _, path = remainder.partition("/")
    name, _, revision = name.partition("@")
    repository = _check_name(f"{owner}/{name}")
    with _open_hub(address) as hub:
        info = hub.dataset_info(repository, revision=revision or None)
        file_names = sorted(sibling.rfilename for sibling in info.siblings or ())
        below = [path_ for path_ in file_names if not path or f"{path_}/".startswith(f"{path}/")]
        for endings in _FORMS:
            files = [name for name in below if name.removesuffix(".gz").endswith(endings)]
            if files:
                return [
                    Path(
                        hub.hf_hub_download(
                            repository, file, repo_type="dataset", revision=info.sha
                        )
                    )
                    for file in files
                ]
    expected = f"one of {', '.join(ending for endings in _FORMS for ending in endings)}"
    raise InputError("the dataset has no file that can be read", file=address, expected=expected)


def push(folder: Path, repository: str, *, public: bool) -> str:
    """Write a folder's files into a dataset at the Hub, which is made if it is not there.

    Args:
        folder: its files replace those of the same names, in one commit.
        repository: ORGANISATION/NAME.
        public: whether one that is made can be read by everybody.

    Returns:
        Its address.

    Raises:
        UsageError: the name is none, or ``huggingface_hub`` is not installed.
        InputError: the Hub refuses.
    """
    with _open_hub(_check_name(repository)) as hub:
        address = hub.create_repo(
            repository, repo_type="dataset", private=not public, exist_ok=True
        )
        words = "Annotations, written by spanlab"
        hub.upload_folder(
            repo_id=repository, folder_path=folder, repo_type="dataset", commit_message=words
        )
    return str(address)


def _check_name(repository: str) -> str:
    if not _REPOSITORY.fullmatch(repository):
        raise UsageError(f"{repository!r} names no dataset of the Hub: it is ORGANISATION/NAME")
    return repository


@contextmanager
def _open_hub(address: str) -> Iterator[HfApi]:
    try:
        from huggingface_hub import HfApi
    except ModuleNotFoundError as error:
        raise missing_package("Hugging Face's Hub", error.name, "hub") from None
    with foreign(f"{address}: the Hub does not take or give it", InputError):
        yield HfApi(endpoint=os.environ.get("HF_ENDPOINT"))


_DATA = "data/train.jsonl"
_TIME = (1980, 1, 1, 0, 0, 0)  # the same records give the same bytes
_TEXT, _NUMBER, _OFFSET = "string", "float64", "int64"
_FEATURES: dict[str, object] = {
    "id": _TEXT,
    "lang": _TEXT,
    "question": _TEXT,
    "answer": _TEXT,
    "passages": [dict.fromkeys(("text", "title", "url", "date"), _TEXT)],
    "annotations": [
        {
            "annotator": _TEXT,
            "kind": _TEXT,
            "status": _TEXT,
            "spans": [
                {
                    "start": _OFFSET,
                    "end": _OFFSET,
                    "text": _TEXT,
                    "prob": _NUMBER,
                    "label": _TEXT,
                    "note": _TEXT,
                    "attributes": _TEXT,
                }
            ],
            "claims": [
                {
                    "text": _TEXT,
                    "verdict": _TEXT,
                    "prob": _NUMBER,
                    "start": _OFFSET,
                    "end": _OFFSET,
                    "note": _TEXT,
                }
            ],
            "note": _TEXT,
            "responses": _TEXT,
        }
    ],
    "meta": _TEXT,
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
annotators that marked them). `status` tells *done* without spans from *failed* and *skipped*.
`meta` is JSON, as are responses to what was asked of each span (`attributes`) and of each answer
(`responses`).
"""


def write_hub(records: Iterable[Record], stream: BinaryIO, title: str) -> int:
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
        text = _CARD.format(title=_plain(title), items=count, annotators=rows or "| none | | |")
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


def _feature(name: str, kind: object) -> dict[str, object]:
    if isinstance(kind, list):
        return {"name": name, "list": [_feature(*item) for item in kind[0].items()]}
    return {"name": name, "dtype": kind}


def _plain(text: str) -> str:
    """Return a name as one line of Markdown in which nothing is markup."""
    return "".join(f"\\{c}" if c in "\\`*_{}[]()<>#+!|&" else c for c in " ".join(text.split()))
