"""A detector's prompts are known by its signatures and data, wherever in its package they stand."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from spanlab.base.settings import Settings
from spanlab.detection import DetectorSpec
from spanlab.detection.entry import entries, installed
from spanlab.detection.setup import prompt_hash

ENTRY = """
from pathlib import Path

from spanlab.detection.entry import DetectorEntry

ENTRY = DetectorEntry(
    name="minder",
    what="",
    needs="",
    create="minder.detector:create",
    roles=("model",),
    data=lambda _options: [Path(__file__).with_name("model.json")],
)
"""
PROMPT = """
import dspy


class FindIt(dspy.Signature):
    '''Find what is wrong.'''

    answer: str = dspy.InputField(desc="an answer")
    wrong: list[str] = dspy.OutputField(desc="its wrong words")
"""
RETRY = "from spanlab.models.adapters import PromptText"
CREATE = "\n\nNOTE = 'nothing was fuond'\n\n\ndef create(kit): ...\n"

Hash = Callable[..., str]


@pytest.fixture
def hash_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hash]:
    """Install the files of a detector's package, and return the hash of its prompts."""

    def forget() -> None:
        installed.cache_clear()
        for name in [name for name in sys.modules if name.split(".")[0] == "minder"]:
            del sys.modules[name]

    def install_and_hash(**files: str) -> str:
        forget()
        site = tmp_path / str(len(list(tmp_path.iterdir())))
        info, package = site / "minder-1.dist-info", site / "minder"
        for folder in (info, package):
            folder.mkdir(parents=True)
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: minder\nVersion: 1\n")
        (info / "entry_points.txt").write_text("[spanlab.detectors]\nminder = minder.entry:ENTRY\n")
        (package / "__init__.py").touch()
        (package / "entry.py").write_text(ENTRY)
        for name, text in files.items():
            (package / name.replace("_dot_", ".")).write_text(text)
        monkeypatch.syspath_prepend(str(site))
        return prompt_hash(DetectorSpec(detector="minder"), Settings(home=tmp_path / "home"))

    yield install_and_hash
    forget()


def test_a_prompt_that_moves_is_the_same_and_one_that_says_something_else_is_not(
    hash_of: Hash,
) -> None:
    before = hash_of(detector_dot_py=PROMPT + CREATE)
    moved = "from minder.words import FindIt, Reply\n" + CREATE
    assert hash_of(detector_dot_py=moved, words_dot_py=PROMPT + "\n\nclass Reply: ...\n") == before
    assert hash_of(detector_dot_py="# A remark.\n" + PROMPT + CREATE + "x = 1\n") == before
    mended = PROMPT + CREATE.replace("fuond", "found")
    assert hash_of(detector_dot_py=mended, minder_dot_md="# A page of the guide") == before
    for old, new in (
        ("Find what is wrong.", "Find what is right."),
        ("its wrong words", "its words"),
        ("list[str]", "str"),
    ):
        assert hash_of(detector_dot_py=(PROMPT + CREATE).replace(old, new)) != before
    assert hash_of(detector_dot_py=PROMPT + CREATE, model_dot_json="[1]") != before


def test_what_a_retry_adds_to_a_prompt_belongs_to_it(hash_of: Hash) -> None:
    hashes = [
        hash_of(detector_dot_py=PROMPT + f"{RETRY}\nINSISTING = PromptText({words!r})\n" + CREATE)
        for words in ("Quote the answer.", "Quote the answer alone.")
    ]
    assert len({*hashes, hash_of(detector_dot_py=PROMPT + CREATE)}) == 3


@pytest.mark.system("span_model")
def test_a_contract_is_a_prompt_though_it_stands_in_a_file(tmp_path: Path) -> None:
    contract, hashes = tmp_path / "contract.json", set()
    spec = DetectorSpec(detector="span-model", options={"contract": str(contract)})
    for text in ("{}", '{"user": "Which words?"}'):
        contract.write_text(text)
        hashes.add(prompt_hash(spec, Settings(home=tmp_path)))
    assert len(hashes) == 2


@pytest.mark.system("offline")
@pytest.mark.system("encoder")
def test_every_detector_has_a_hash_and_those_that_ask_models_one_of_their_own(
    tmp_path: Path,
) -> None:
    settings = Settings(home=tmp_path)
    nothing = prompt_hash(DetectorSpec(detector="encoder"), settings)
    for entry in entries():
        own = prompt_hash(DetectorSpec(detector=entry.name), settings)
        assert len(own) == 64
        has_some = entry.asks_models or entry.name in {"offline", "citations"}  # one model
        elsewhere = entry.name == "span-model"  # its contract is in a package that is not installed
        assert (own == nothing) == (not has_some or elsewhere), entry.name
