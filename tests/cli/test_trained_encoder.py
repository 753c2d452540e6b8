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
