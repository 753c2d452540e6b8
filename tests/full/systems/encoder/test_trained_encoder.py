"""A BERT of one layer is trained by the command, and used as any checkpoint is.

It needs torch and transformers: `make test-torch`.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
import tiny_encoders as tiny
import torch
from safetensors.torch import load_file, save_file
from transformers import BertConfig, BertForTokenClassification, BertModel

from spanlab.systems.encoder.fitting import TrainingRow, export

Run = Callable[..., subprocess.CompletedProcess[str]]
ANSWER = "the tower was built in {} ."


def bert() -> BertConfig:
    return BertConfig(
        vocab_size=tiny.word_piece().get_vocab_size(),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=1,
        num_attention_heads=2,
        max_position_embeddings=64,
    )


@pytest.fixture
def base(tmp_path: Path) -> Path:
    with torch.random.fork_rng():
        torch.manual_seed(1)
        BertModel(bert()).save_pretrained(tmp_path / "base")
    tiny.word_piece().save(str(tmp_path / "base" / "tokenizer.json"))
    return tmp_path / "base"


@pytest.fixture
def labelled(tmp_path: Path) -> Path:
    """Thirty answers over passages of their own; of three people two mark 1984, nobody 1889."""
    lines = []
    for number in range(30):
        year = ("1984", "1889")[number % 2]
        span = {"start": 23, "end": 27, "text": year}
        people = [
            {
                "annotator": name,
                "kind": "person",
                "status": "done",
                "spans": [span] if name != "carl" and year == "1984" else [],
            }
            for name in ("anna", "ben", "carl")
        ]
        item = {"id": f"i{number}", "lang": "en", "answer": ANSWER.format(year)}
        passages = [{"text": "paris stands by the river . " * (1 + number)}]
        lines.append(item | {"passages": passages, "annotations": people})
    path = tmp_path / "labelled.jsonl"
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return path


def test_a_checkpoint_is_trained_and_marks_what_people_marked(
    spanlab: Run, base: Path, labelled: Path, tmp_path: Path
) -> None:
    settings = ("--folds", "2", "--epochs", "15", "--rate", "0.01")
    command = ("encoder", "train", labelled, "--base", base, *settings)
    for target in ("mine", "again"):
        done = spanlab(*command, "-o", target)
        assert done.returncode == 0, done.stderr
    assert re.search(
        r"held out: IoU (1|\.9)\S+ \(\S+ to (1.000|\.9\d+)\), Corr (1|\.9)", done.stderr
    )
    assert "mark-none: IoU .500 (" in done.stderr
    assert "mark-all: IoU " in done.stderr
    assert "from 30 items" in done.stderr
    mine, again = ((tmp_path / name / "model.onnx").read_bytes() for name in ("mine", "again"))
    assert mine == again
    note = json.loads((tmp_path / "mine" / "config.json").read_text())["spanlab"]
    assert (note["format"], note["items"], note["folds"]) == ("pair", {"en": 30}, 2)
    assert note["rows"] > 30  # long passages take several windows

    checked = spanlab("encoder", "check", "mine")
    assert "supported, hallucinated; these mean supported: supported" in checked.stdout
    option = ("--option", "model=mine", "--option", "calibration=mine/calibration.json")
    used = spanlab("annotate", labelled, "--detector", "encoder", *option, "-o", "out.jsonl")
    assert used.returncode == 0, used.stderr
    right = 0
    for line in (tmp_path / "out.jsonl").read_text().splitlines():
        record = json.loads(line)
        (said,) = (each for each in record["annotations"] if each["annotator"] == "encoder")
        assert "it read the answer after: {passages}" in said["trace"][0]["text"]
        marks = [span["text"] for span in said["spans"] if span["prob"] > 0.5]
        right += marks == (["1984"] if "1984" in record["answer"] else [])
    assert right > 25  # others would be marked by chance

    refused = spanlab(*command, "-o", "mine")
    assert refused.returncode == 2
    assert "mine already exists: name another folder with -o" in refused.stderr


def test_a_base_without_weights_of_its_own_is_refused(
    spanlab: Run, base: Path, labelled: Path, tmp_path: Path
) -> None:
    config = json.loads((base / "config.json").read_text())
    (base / "config.json").write_text(json.dumps(config | {"auto_map": {"AutoModel": "x.Y"}}))
    command = ("encoder", "train", labelled, "--base", base, "-o", "mine")
    assert "which may run code" in spanlab(*command).stderr
    (base / "model.safetensors").unlink()
    assert "base/model.safetensors: the base has no weights to train" in spanlab(*command).stderr
    assert not (tmp_path / "mine").exists()


def _config(**changed: object) -> Callable[[Path], object]:
    def change(base: Path) -> None:
        config = json.loads((base / "config.json").read_text())
        (base / "config.json").write_text(json.dumps(config | changed))

    return change


def _weights(change: Callable[[bytes], bytes]) -> Callable[[Path], object]:
    def changed(base: Path) -> None:
        path = base / "model.safetensors"
        path.write_bytes(change(path.read_bytes()))

    return changed


def _no_numbers(base: Path) -> None:
    weights = load_file(base / "model.safetensors")
    nan = {name: torch.full_like(tensor, torch.nan) for name, tensor in weights.items()}
    save_file(nan, base / "model.safetensors", metadata={"format": "pt"})


HOSTILE: dict[str, tuple[Callable[[Path], object], str]] = {
    "a million layers": (
        _config(num_hidden_layers=1_000_000),
        "larger model than the file has weights for",
    ),
    "wider than its weights": (_config(hidden_size=65_536), "larger model .*hidden_size: 65,536"),
    "a vocabulary of a billion": (_config(vocab_size=10**9), "vocab"),
    "an unknown kind": (_config(model_type="mine"), "transformers cannot load"),
    "a kind with code": (_config(architectures=["x"], auto_map={"AutoModel": "x.Y"}), "run code"),
    "cut weights": (_weights(lambda data: data[:-100]), "cannot load the model: .*header"),
    "a head of four exabytes": (
        _weights(lambda data: b"\xff" * 7 + b"\x3f" + data[8:]),
        "the weights are damaged",
    ),
    "a head that is no JSON": (
        _weights(lambda data: data[:8] + b"[" * 100 + data[108:]),
        "the weights are damaged",
    ),
    "weights that are no numbers": (_no_numbers, "not a probability"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_base_that_is_made_to_harm_ends_in_words(
    spanlab: Run, base: Path, labelled: Path, tmp_path: Path, name: str
) -> None:
    harm, words = HOSTILE[name]
    harm(base)
    done = spanlab("encoder", "train", labelled, "--base", base, "-o", "mine", "--epochs", "1")
    assert done.returncode in {1, 2}
    assert re.search(words, done.stderr), done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "mine").exists()


@pytest.mark.parametrize("length", [1, 9])
def test_the_network_in_onnx_is_the_network(tmp_path: Path, length: int) -> None:
    model = BertForTokenClassification(bert()).train()
    shares = np.zeros(4, np.float32)
    export(model, [TrainingRow([1, 2, 3, 4], [0, 0, 1, 1], shares, 1.0)], tmp_path / "model.onnx")
    assert not model.training
    ids = np.arange(2 * length).reshape(2, length) + 5
    mask, types = np.ones_like(ids), np.zeros_like(ids)
    mask[1, 1:] = 0
    given = {"input_ids": ids, "attention_mask": mask, "token_type_ids": types}
    (logits,) = onnxruntime.InferenceSession(tmp_path / "model.onnx").run(None, given)
    with torch.no_grad():
        wanted = model(**{name: torch.tensor(value) for name, value in given.items()}).logits
    assert logits[mask > 0] == pytest.approx(wanted.numpy()[mask > 0], abs=1e-5)
