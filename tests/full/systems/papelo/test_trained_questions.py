"""A T5 that is trained here, in seconds, to ask about two claims writes Papelo's first questions.

It needs torch and transformers: `make test-torch`.
"""

from __future__ import annotations

import json
import pickle
import subprocess
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import tiny_encoders as tiny
import torch
from fake_hub import COMMIT, Hub, serving
from pursuit_answers import PursuitModel, ScriptedWeb
from safetensors.torch import load_file, save_file
from transformers import T5Config, T5ForConditionalGeneration

from spanlab.base.errors import InputError
from spanlab.networks.rewriter import TextRewriter
from spanlab.search.addresses import ALLOWED
from spanlab.testing import ModelServer

pytestmark = pytest.mark.system("encoder")

Run = Callable[..., subprocess.CompletedProcess[str]]
QUESTIONS = {
    "the tower was built in 1984 .": "when was the tower built ?",
    "paris stands by the river .": "is paris by the river ?",
}


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a T5 of one layer, as transformers saves it."""
    tokenizer = tiny.word_piece()
    with torch.random.fork_rng():
        torch.manual_seed(1)
        model = T5ForConditionalGeneration(
            T5Config(
                vocab_size=tokenizer.get_vocab_size(),
                d_model=32,
                d_kv=8,
                d_ff=64,
                num_layers=1,
                num_heads=2,
                dropout_rate=0.0,
                decoder_start_token_id=0,
                pad_token_id=0,
                eos_token_id=tokenizer.token_to_id("[SEP]"),
            )
        )

    def rows(texts: Sequence[str], fill: int) -> torch.Tensor:
        ids = [tokenizer.encode(text).ids for text in texts]
        longest = max(len(row) for row in ids)
        return torch.tensor([row + [fill] * (longest - len(row)) for row in ids])

    read = rows([f"question: {claim}" for claim in QUESTIONS], 0)
    written = rows(list(QUESTIONS.values()), -100)[:, 1:].contiguous()  # without [CLS]
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-2)
    for _ in range(100):
        loss = model(input_ids=read, attention_mask=(read > 0).long(), labels=written).loss
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    folder = tmp_path_factory.mktemp("t5")
    model.save_pretrained(folder)
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "generation_config.json").write_text('{"do_sample": true, "temperature": 9.0}')
    return folder


def test_a_checkpoint_from_the_hub_asks_the_first_questions(
    model_server: ModelServer, spanlab: Run, trained: Path, tmp_path: Path
) -> None:
    (tmp_path / "hub").mkdir()
    for file in trained.iterdir():
        (tmp_path / "hub" / file.name).write_bytes(file.read_bytes())
    (tmp_path / "hub" / "pytorch_model.bin").write_bytes(pickle.dumps({}))  # is not asked for
    with serving(Hub("org/t5", tmp_path / "hub")) as hub:
        fetched = spanlab("encoder", "fetch", "org/t5", HF_ENDPOINT=hub.url)
        assert fetched.returncode == 0, fetched.stderr
        assert "use it: --detector papelo --option first_model=org/t5" in fetched.stderr
        got = {path.rpartition("/")[2] for path in hub.asked if "resolve" in path}
        assert got == {"model.safetensors", "tokenizer.json", "config.json"}
    assert spanlab("encoder", "list").stdout.startswith(f"org/t5  {COMMIT[:12]}  ")

    claims = [{"id": claim, "lang": "en", "answer": claim} for claim in QUESTIONS]
    (tmp_path / "claims.jsonl").write_text("\n".join(json.dumps(each) for each in claims))
    settled = [{"claim_is": "True", "question": ""}] * len(claims)
    model_server.script(PursuitModel(*settled))
    with ModelServer() as server:
        web = ScriptedWeb(server)
        options = ("claims=answer", "n=1", "first_model=org/t5")
        annotate = (
            *("annotate", "claims.jsonl", "--detector", "papelo", "-o", "out.jsonl"),
            *("--model", "scripted-model"),
            *(word for option in options for word in ("--option", option)),
            *("--search", "search", "--search-url", f"{web.root}/search?q={{query}}&n={{k}}"),
        )
        allowed = {ALLOWED: f"127.0.0.1:{server.port}"}
        done = spanlab(*annotate, **allowed)
        assert done.returncode == 0, done.stderr
        assert {f"{claim} {question}" for claim, question in QUESTIONS.items()} <= {*web.searched}
    records = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert {
        each["answer"]: step["question"]
        for each in records
        for step in each["annotations"][0]["trace"]
        if "question" in step
    } == QUESTIONS

    (changed,) = (tmp_path / "home").rglob("model.safetensors")
    changed.write_bytes(changed.read_bytes() + b" ")
    refused = spanlab(*annotate, **allowed)
    assert "the weights are not those that were fetched" in refused.stderr


def test_it_is_loaded_once_writes_the_same_every_time_and_is_refused_in_part(
    trained: Path, tmp_path: Path
) -> None:
    made, again = (TextRewriter.load(str(trained)) for _ in range(2))
    assert made.network == again.network  # the model itself is the same
    texts = [f"question: {claim}" for claim in QUESTIONS] * 8
    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(made.rewrite, texts)) == [*QUESTIONS.values()] * 8
    assert made.rewrite(texts[0], most=3) == "when was the"
    with pytest.raises(InputError, match="the text has 602 tokens, and the model reads 512"):
        made.rewrite("tower " * 600)

    weights = load_file(trained / "model.safetensors")
    weights.pop("decoder.final_layer_norm.weight")
    for file in ("config.json", "tokenizer.json"):
        (tmp_path / file).write_bytes((trained / file).read_bytes())
    save_file(weights, tmp_path / "model.safetensors", {"format": "pt"})
    with pytest.raises(InputError, match=r"lacks weights.* decoder.final_layer_norm"):
        TextRewriter.load(str(tmp_path))
    (tmp_path / "model.safetensors").write_bytes(b"\xff" * 100)
    with pytest.raises(InputError, match="the weights are damaged"):
        TextRewriter.load(str(tmp_path))
    save_file(weights, tmp_path / "model.safetensors", {"format": "pt"})
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(config | {"model_type": "bert"}))
    with pytest.raises(InputError, match="transformers cannot load the model: Unrecognized"):
        TextRewriter.load(str(tmp_path))
