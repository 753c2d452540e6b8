"""Local encoders from the command line: fetch, convert, list, check, calibrate, annotate."""

from __future__ import annotations

import json
import os
import pickle
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import tiny_encoders as tiny
from fake_hub import COMMIT, Hub, serving

Run = Callable[..., subprocess.CompletedProcess[str]]
NAME = "org/tiny"


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    return tiny.write(tmp_path / "tiny", tiny.copied())


@pytest.fixture
def labelled(tmp_path: Path) -> Path:
    """Forty answers whose year is wrong in three of four, as two people marked it."""
    lines = []
    for number in range(40):
        answer = "the tower was built in 1984 ."
        span = {"start": 23, "end": 27, "text": "1984"}
        people = [
            {
                "annotator": name,
                "kind": "person",
                "status": "done",
                "spans": [span] if number // 2 % 4 else [],
            }
            for name in ("anna", "ben")
        ]
        item = {"id": f"i{number}", "lang": "en", "question": "when ?", "answer": answer}
        passages = [{"text": "the tower was built in 1889 ."}]
        lines.append(item | {"passages": passages, "annotations": people})
    path = tmp_path / "labelled.jsonl"
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return path


def test_a_checkpoint_is_fetched_at_a_commit_listed_and_used(
    spanlab: Run, checkpoint: Path, labelled: Path
) -> None:
    (checkpoint / "pytorch_model.bin").write_bytes(pickle.dumps({}))  # is not asked for
    with serving(Hub(NAME, checkpoint)) as hub:
        done = spanlab("encoder", "fetch", NAME, "--revision", "main", HF_ENDPOINT=hub.url)
        assert done.returncode == 0, done.stderr
        assert f"{NAME} at commit {COMMIT}" in done.stderr
        got = {path.rpartition("/")[2] for path in hub.asked if "resolve" in path}
        assert got == {"model.onnx", "tokenizer.json", "config.json"}
        missing = spanlab("encoder", "fetch", "org/other", HF_ENDPOINT=hub.url)
        assert missing.returncode == 1
        assert "the hub did not give org/other at 'main'" in missing.stderr
    listed = spanlab("encoder", "list")
    assert listed.stdout.startswith(f"{NAME}  {COMMIT[:12]}  ")
    assert "supported, hallucinated" in listed.stdout
    option = ("--detector", "encoder", "--option", f"model={NAME}")
    used = spanlab("annotate", labelled, *option, "-o", "out.jsonl")
    assert used.returncode == 0, used.stderr
    first = json.loads((labelled.parent / "out.jsonl").read_text().partition("\n")[0])
    (said,) = (each for each in first["annotations"] if each["annotator"] == "encoder")
    assert [(span["text"], span["prob"]) for span in said["spans"]] == [("1984", 0.9)]


@pytest.mark.parametrize("weights", ["whole", "sharded"])
def test_a_checkpoint_in_safetensors_is_fetched_converted_and_used_by_its_name(
    spanlab: Run, checkpoint: Path, labelled: Path, tmp_path: Path, weights: str
) -> None:
    """As LettuceDetect's are: no ONNX, labels without names."""
    source = tmp_path / "torch"
    shutil.copytree(checkpoint, source, ignore=shutil.ignore_patterns("model.onnx"))
    parts = ["model.safetensors"]
    if weights == "sharded":
        parts = [f"model-0000{number}-of-00002.safetensors" for number in (1, 2)]
        parts.append("model.safetensors.index.json")
    for part in parts:
        (source / part).write_bytes(b"{}")
    config = json.loads((source / "config.json").read_text())
    config["architectures"] = ["ModernBertForTokenClassification"]
    config["id2label"] = {"0": "LABEL_0", "1": "LABEL_1"}
    (source / "config.json").write_text(json.dumps(config))
    (source / "tokenizer_config.json").write_text("{}")
    with serving(Hub(NAME, source)) as hub:
        done = spanlab("encoder", "fetch", NAME, HF_ENDPOINT=hub.url)
        assert done.returncode == 0, done.stderr
        got = {path.rpartition("/")[2] for path in hub.asked if "resolve" in path}
    assert got == {*parts, "tokenizer.json", "config.json", "tokenizer_config.json"}
    assert f"spanlab encoder convert {NAME}\n" in done.stderr
    assert NAME in spanlab("encoder", "list").stdout
    early = spanlab("encoder", "check", NAME)
    assert f"`spanlab encoder convert {NAME}` makes it" in early.stderr

    command = tmp_path / "bin" / "optimum-cli"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\ncp {checkpoint}/* "$7"\ncp {source}/config.json "$7"\n')
    command.chmod(command.stat().st_mode | stat.S_IXUSR)
    path = f"{command.parent}{os.pathsep}{os.environ['PATH']}"
    done = spanlab("encoder", "convert", NAME, PATH=path)
    assert done.returncode == 0, done.stderr
    used = f"--detector encoder --option model={NAME} --option supported=LABEL_0"
    assert done.stderr.endswith(f"use it: {used}\n")
    assert "0.0 MiB  LABEL_0, LABEL_1" in spanlab("encoder", "list").stdout
    found = spanlab("annotate", labelled, *used.split(), "-o", "out.jsonl")
    assert found.returncode == 0, found.stderr
    checked = spanlab("encoder", "check", NAME, "--option", "supported=LABEL_0")
    assert checked.returncode == 0, checked.stderr


def test_training_names_the_extra_that_it_needs(
    spanlab: Run, labelled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)  # as where it is not installed
    done = spanlab("encoder", "train", labelled, "--base", "base", "-o", "mine")
    assert done.returncode == 2
    needed = "training a checkpoint needs torch: pip install 'spanlab[transformers]'"
    assert needed in done.stderr


def test_a_file_that_is_not_what_the_hub_lists_is_refused(spanlab: Run, checkpoint: Path) -> None:
    with serving(Hub(NAME, checkpoint, wrong_hash=True)) as hub:
        done = spanlab("encoder", "fetch", NAME, HF_ENDPOINT=hub.url)
    assert done.returncode == 1
    assert "org/tiny/model.onnx: the file is not what the hub has listed" in done.stderr
    listed = spanlab("encoder", "list")
    assert (listed.stdout, listed.returncode) == ("", 0)
    assert "none was fetched yet" in listed.stderr


def test_weights_that_were_changed_after_fetching_are_refused(
    spanlab: Run, checkpoint: Path, tmp_path: Path
) -> None:
    with serving(Hub(NAME, checkpoint)) as hub:
        assert spanlab("encoder", "fetch", NAME, HF_ENDPOINT=hub.url).returncode == 0
    (folder,) = tmp_path.rglob("org--tiny")
    tiny.save(folder / "model.onnx", tiny.table(tiny.word_piece(), ["tower"]))
    done = spanlab("encoder", "check", NAME)
    assert done.returncode == 1
    assert "the weights are not those that were fetched" in done.stderr
    (folder / "fetched.json").write_text("{}")
    listed = spanlab("encoder", "list")
    assert listed.returncode == 1
    assert "fetched.json, name: not what `spanlab encoder fetch` notes" in listed.stderr


@pytest.mark.parametrize("name", ["tiny", "../up/tiny", "org/tiny/more", "org--x/tiny"])
def test_what_is_no_name_of_the_hub_is_refused(spanlab: Run, name: str) -> None:
    done = spanlab("encoder", "fetch", name)
    assert done.returncode == 2
    assert "is not a name of the hub: it is ORGANISATION/NAME" in done.stderr


def test_prompts_in_other_languages_are_those_of_lettucedetects_own_package(
    spanlab: Run,
    checkpoint: Path,
    labelled: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The words are ours here: its package is not among the tests' dependencies."""
    option = ("--detector", "encoder", "--option", f"model={checkpoint}", "-o", "out.jsonl")

    def read(lang: str, *options: str) -> str:
        lines = labelled.read_text().replace('"lang": "en"', f'"lang": "{lang}"')
        (tmp_path / "other.jsonl").write_text(lines.partition("\n")[0] + "\n")
        done = spanlab("annotate", "other.jsonl", *option, *options)
        assert done.returncode == 0, done.stderr
        (said,) = (
            each
            for each in json.loads((tmp_path / "out.jsonl").read_text())["annotations"]
            if each["annotator"] == "encoder"
        )
        return str(said["trace"][0]["text"])

    english = read("zh")
    assert "Briefly answer" in english
    prompts = tmp_path / "packages" / "lettucedetect" / "prompts"
    prompts.mkdir(parents=True)
    (prompts.parent / "__init__.py").write_text("raise ImportError('it is not imported')")
    (prompts / "qa_prompt_cn.txt").write_text(
        "问：${question}（${num_passages}）\n${context}\n答："
    )
    (prompts / "summary_prompt_cn.txt").write_text("${text}")
    monkeypatch.syspath_prepend(prompts.parent.parent)
    assert read("zh").endswith("问：{question}（{count}）\n{passages}\n答：")
    assert read("de") == english  # a file that it does not have
    own = ("--option", "template=Q {question} {passages}", "--option", "label={number}) ")
    assert read("zh", *own).endswith("Q {question} {passages}")


def test_check_says_what_a_checkpoint_is_and_does(spanlab: Run, checkpoint: Path) -> None:
    done = spanlab("encoder", "check", checkpoint, "--option", "format=pair")
    assert done.returncode == 0, done.stderr
    said = dict(line.split(maxsplit=1) for line in done.stdout.splitlines() if "probe" not in line)
    assert said["network"].startswith("model.onnx, 0.0 MiB, classifies every token; SHA-256 ")
    assert said["labels"] == "supported, hallucinated; these mean supported: supported"
    assert said["window"] == "512 tokens"
    assert said["offsets"] == "exact in all scripts tried"
    assert said["speed"].startswith("512 tokens in ")
    assert (
        "probe en   “1768” is right: hallucinated with 0.10; “1931” is wrong: 0.70 "
        "(tells them apart)"
    ) in done.stdout


def test_check_tells_a_classifier_of_pairs(spanlab: Run, tmp_path: Path) -> None:
    tokenizer = tiny.word_piece()
    folder = tiny.write(tmp_path / "nli", tiny.entailed(tokenizer), tokenizer, tiny.NLI_LABELS)
    done = spanlab("encoder", "check", folder)
    assert done.returncode == 0, done.stderr
    assert "classifies pairs of texts" in done.stdout
    assert (
        "labels     entailment, neutral, contradiction; these mean supported: entailment"
        in done.stdout
    )


def test_a_checkpoint_of_pytorch_is_converted_by_the_users_own_optimum(
    spanlab: Run, checkpoint: Path, tmp_path: Path
) -> None:
    source = tmp_path / "torch"
    shutil.copytree(checkpoint, source, ignore=shutil.ignore_patterns("model.onnx"))
    (source / "model.safetensors").write_bytes(b"")
    config = json.loads((source / "config.json").read_text())
    config["architectures"] = ["ModernBertForTokenClassification"]
    (source / "config.json").write_text(json.dumps(config))
    missing = spanlab("encoder", "convert", source, "-o", "onnx")
    assert missing.returncode == 2
    assert "needs torch and optimum" in missing.stderr

    command = tmp_path / "bin" / "optimum-cli"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\necho "$@" > {tmp_path}/asked\ncp {checkpoint}/* "$7"\n')
    command.chmod(command.stat().st_mode | stat.S_IXUSR)
    path = f"{command.parent}{os.pathsep}{os.environ['PATH']}"
    done = spanlab("encoder", "convert", source, "-o", "onnx", PATH=path)
    assert done.returncode == 0, done.stderr
    asked = (tmp_path / "asked").read_text()
    assert f"export onnx --model {source} --task token-classification" in asked
    assert "trust" not in asked
    assert spanlab("encoder", "check", "onnx").returncode == 0
    again = spanlab("encoder", "convert", source, "-o", "onnx")
    assert "onnx already exists" in again.stderr

    (source / "pytorch_model.bin").write_bytes(pickle.dumps({}))
    refused = spanlab("encoder", "convert", source, "-o", "other")
    assert refused.returncode == 1
    assert "the checkpoint holds a pickle" in refused.stderr


def test_a_calibration_gives_words_the_share_of_people_who_mark_them(
    spanlab: Run, checkpoint: Path, labelled: Path
) -> None:
    """`1984` is doubted with .9 and marked in three items of four."""
    method = "isotonic"
    options = ("--option", f"model={checkpoint}", "--option", "format=pair")
    done = spanlab("calibrate", labelled, *options, "--method", method, "-o", "learnt.json")
    assert done.returncode == 0, done.stderr
    assert "before: calibration error 0.086, IoU 0.750" in done.stderr
    assert "after: calibration error 0.000, IoU 0.750" in done.stderr
    learnt = json.loads((labelled.parent / "learnt.json").read_text())
    assert (learnt["method"], learnt["items"]) == (method, 40)

    use = (*options, "--option", "calibration=learnt.json", "--option", "floor=0.5")
    used = spanlab("annotate", labelled, "--detector", "encoder", *use, "-o", "out.jsonl")
    assert used.returncode == 0, used.stderr
    first = json.loads((labelled.parent / "out.jsonl").read_text().partition("\n")[0])
    (said,) = (each for each in first["annotations"] if each["annotator"] == "encoder")
    (span,) = said["spans"]
    assert (span["text"], span["prob"]) == ("1984", 0.75)
    assert f"calibrated by {method}" in said["trace"][0]["text"]


def test_a_calibration_needs_labels_and_its_own_weights(
    spanlab: Run, checkpoint: Path, labelled: Path, tmp_path: Path
) -> None:
    few = tmp_path / "few.jsonl"
    few.write_text("".join(labelled.read_text().splitlines(keepends=True)[:9]))
    options = ("--option", f"model={checkpoint}")
    done = spanlab("calibrate", few, *options, "-o", "learnt.json")
    assert done.returncode == 2
    assert "9 items have labels and can be read: a calibration needs at least 10" in done.stderr
    assert spanlab("calibrate", labelled, *options, "-o", "learnt.json").returncode == 0
    other = tiny.write(tmp_path / "other")
    use = ("--option", f"model={other}", "--option", "calibration=learnt.json")
    refused = spanlab("annotate", labelled, "--detector", "encoder", *use, "-o", "out.jsonl")
    assert refused.returncode == 1
    assert "the calibration was learnt for other weights" in refused.stderr


def test_a_dataset_is_annotated_in_a_job_and_the_encoder_votes(
    spanlab: Run, checkpoint: Path, labelled: Path
) -> None:
    assert spanlab("import", labelled, "--dataset", "towers").returncode == 0
    without = spanlab("annotate", "towers", "--detector", "encoder")
    assert without.returncode == 2
    assert "'encoder' needs the option 'model': " in without.stderr
    detectors = ("--detector", "encoder", "--detector", "offline", "--vote", "both")
    done = spanlab("annotate", "towers", *detectors, "--option", f"model={checkpoint}")
    assert done.returncode == 0, done.stderr
    told = spanlab("datasets").stdout
    assert "encoder" in told
    exported = spanlab("export", "towers", "--annotator", "both", "--format", "spanlab")
    said = json.loads(exported.stdout.partition("\n")[0])["annotations"]
    assert [each["voters"] for each in said if each["annotator"] == "both"] == [
        ["encoder", "offline"]
    ]
