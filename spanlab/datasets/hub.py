"""Datasets at Hugging Face's Hub: read as ``hf://ORGANISATION/NAME``, and written (extra ``hub``).

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

from spanlab.errors import InputError, UsageError, missing_package
from spanlab.inbound import foreign

if TYPE_CHECKING:
    from huggingface_hub import HfApi

PREFIX: Final = "hf://"
_REPOSITORY: Final = re.compile(r"[A-Za-z0-9_][\w.-]*/[A-Za-z0-9_][\w.-]*", re.ASCII)
# A dataset often is there in several forms; those that come first are read.
_FORMS: Final = ((".parquet",), (".arrow",), (".jsonl", ".ndjson"), (".csv", ".tsv"), (".json",))


def fetched(address: str) -> list[Path]:
    """Return the files of a dataset at the Hub as files here.

    Args:
        address: ``hf://ORGANISATION/NAME``, maybe with ``@REVISION``, and with the path of a file
            or a folder of it behind that.

    Raises:
        UsageError: the address is none, or ``huggingface_hub`` is not installed.
        InputError: the Hub has no such dataset for us, or it has no file that can be read.
    """
    owner, _, rest = address.removeprefix(PREFIX).removeprefix("datasets/").partition("/")
    name, _, path = rest.partition("/")
    name, _, revision = name.partition("@")
    repository = _checked(f"{owner}/{name}")
    with _asking(address) as hub:
        info = hub.dataset_info(repository, revision=revision or None)
        there = sorted(each.rfilename for each in info.siblings or ())
        below = [each for each in there if not path or f"{each}/".startswith(f"{path}/")]
        for endings in _FORMS:
            files = [each for each in below if each.removesuffix(".gz").endswith(endings)]
            if files:
                return [
                    Path(
                        hub.hf_hub_download(
                            repository, each, repo_type="dataset", revision=info.sha
                        )
                    )
                    for each in files
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
    with _asking(_checked(repository)) as hub:
        made = hub.create_repo(repository, repo_type="dataset", private=not public, exist_ok=True)
        words = "Annotations, written by spanlab"
        hub.upload_folder(
            repo_id=repository, folder_path=folder, repo_type="dataset", commit_message=words
        )
    return str(made)


def _checked(repository: str) -> str:
    if not _REPOSITORY.fullmatch(repository):
        raise UsageError(f"{repository!r} names no dataset of the Hub: it is ORGANISATION/NAME")
    return repository


@contextmanager
def _asking(what: str) -> Iterator[HfApi]:
    try:
        from huggingface_hub import HfApi
    except ModuleNotFoundError as error:
        raise missing_package("Hugging Face's Hub", error.name, "hub") from None
    with foreign(f"{what}: the Hub does not take or give it", InputError):
        yield HfApi(endpoint=os.environ.get("HF_ENDPOINT"))
