"""A text becomes a text by a sequence-to-sequence checkpoint.

Those of PyTorch that can be loaded are in ``tests/full/systems/papelo/test_trained_questions.py``.
"""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import tiny_encoders as tiny

from spanlab.base.errors import InputError
from spanlab.networks.rewriter import TextRewriter

WRITTEN = "when was the tower built ?"


def test_a_checkpoint_writes_until_its_end_or_its_limit(tmp_path: Path) -> None:
    made = TextRewriter.load(str(tiny.write_rewriter(tmp_path, WRITTEN)))
    assert made.rewrite("question: the tower was built in 1984 .") == WRITTEN
    assert made.rewrite("the tower", most=3) == "when was the"
    with pytest.raises(InputError, match="the text has 602 tokens, and the model reads 512"):
        made.rewrite("tower " * 600)


def in_torch(folder: Path, **config: object) -> Path:
    """Make of a checkpoint in ONNX the folder of one in PyTorch, without weights worth the name."""
    (folder / "encoder_model.onnx").rename(folder / "model.safetensors")
    (folder / "decoder_model.onnx").unlink()
    said = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(said | config))
    return folder


def pickled(folder: Path) -> None:
    (in_torch(folder) / "model.safetensors").unlink()
    (folder / "pytorch_model.bin").write_bytes(pickle.dumps({}))


WRONG: dict[str, tuple[Callable[[Path], object], str]] = {
    "no decoder": (lambda at: (at / "decoder_model.onnx").unlink(), "no decoder"),
    "no encoder": (lambda at: (at / "encoder_model.onnx").unlink(), "no weights of sequences"),
    "a decoder twice": (
        lambda at: (at / "encoder_model.onnx").write_bytes(
            (at / "decoder_model.onnx").read_bytes()
        ),
        "not an encoder or decoder",
    ),
    "no end": (
        lambda at: (at / "config.json").write_text('{"decoder_start_token_id": 0}'),
        "begins and ends with",
    ),
    "pickle": (lambda at: (at / "x.pkl").write_bytes(b"."), "holds a pickle"),
    "pickled weights": (pickled, "pytorch_model.bin: the checkpoint holds a pickle"),
    "code": (
        lambda at: in_torch(at, auto_map={"AutoModelForSeq2SeqLM": "code.Model"}),
        "more than model.safetensors, which may run code.*found 'auto_map'",
    ),
    "adapter": (
        lambda at: (in_torch(at) / "adapter_config.json").write_text("{}"),
        "more than model.safetensors.*found 'adapter_config.json'",
    ),
    "other weights": (
        lambda at: in_torch(at, transformers_weights="other.safetensors"),
        "more than model.safetensors.*found 'transformers_weights'",
    ),
    "quantised": (
        lambda at: in_torch(at, quantization_config={"quant_method": "awq"}),
        "more than model.safetensors.*found 'quantization_config'",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_checkpoint_that_cannot_be_used_is_refused(name: str, tmp_path: Path) -> None:
    spoil, message = WRONG[name]
    folder = tiny.write_rewriter(tmp_path, WRITTEN)
    spoil(folder)
    with pytest.raises(InputError, match=message):
        TextRewriter.load(str(folder))


def test_without_torch_the_extra_that_brings_it_is_named(tmp_path: Path) -> None:
    """Also where it is installed: what the sandbox imports is chosen before its processes start."""
    missing = tmp_path / "missing"
    missing.mkdir()
    (missing / "torch.py").write_text('raise ModuleNotFoundError("not installed", name="torch")')
    folder = in_torch(tiny.write_rewriter(tmp_path, WRITTEN))
    load = "import sys, spanlab.networks.rewriter as s; s.TextRewriter.load(sys.argv[1])"
    done = subprocess.run(
        [sys.executable, "-c", load, str(folder)],
        env=os.environ | {"PYTHONPATH": str(missing)},
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    assert "safetensors needs torch: pip install 'spanlab[transformers]'" in done.stderr
