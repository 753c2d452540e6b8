"""Datasets at Hugging Face's Hub: fetched as ``hf://ORGANISATION/NAME``, and sent (extra ``hub``).

HF_TOKEN, HF_ENDPOINT and HF_HOME count as everywhere; files that were fetched before are not
fetched again while they are the same at the Hub.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from spanlab.base.errors import InputError, UsageError, missing_package
from spanlab.base.inbound import foreign

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
