"""What is wrong with a checkpoint is said before anything of it is run."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
import tiny_encoders as tiny
from onnx import TensorProto, helper, numpy_helper

from spanlab.base.errors import InputError, UsageError
from spanlab.base.runtime import wait
from spanlab.detection import DetectorSpec, build, detector
from spanlab.schema import Item, Status


def load(folder: Path, **options: object) -> None:
    detector(DetectorSpec(detector="encoder", options={"model": str(folder), **options}))


def change_config(folder: Path, **changes: object) -> None:
    path = folder / "config.json"
    config = json.loads(path.read_text()) | changes
    path.write_text(json.dumps(config))


def _graph(
    node: onnx.NodeProto, kind: int = TensorProto.INT64, name: str = "input_ids"
) -> onnx.GraphProto:
    given = helper.make_tensor_value_info(name, kind, ["b", "t"])
    out = helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["b", "t", 2])
    return helper.make_graph([node], "g", [given], [out])


def _custom_operator(folder: Path) -> None:
    node = helper.make_node("Shell", ["input_ids"], ["logits"], domain="evil.ops")
    tiny.save(folder / "model.onnx", _graph(node), ["evil.ops"])


def _hidden_operator(folder: Path) -> None:
    """It stands in a branch that is run only sometimes."""
    inner = helper.make_graph(
        [helper.make_node("Shell", [], ["x"], domain="evil.ops")],
        "inner",
        [],
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, None)],
    )
    node = helper.make_node("If", ["input_ids"], ["logits"], then_branch=inner, else_branch=inner)
    tiny.save(folder / "model.onnx", _graph(node), ["evil.ops"])


def _loop(folder: Path) -> None:
    body = helper.make_graph(
        [helper.make_node("Identity", ["c"], ["d"])],
        "body",
        [helper.make_tensor_value_info("c", TensorProto.BOOL, [])],
        [helper.make_tensor_value_info("d", TensorProto.BOOL, [])],
    )
    tiny.save(
        folder / "model.onnx", _graph(helper.make_node("Loop", ["", ""], ["logits"], body=body))
    )


def _loop_by_another_name(folder: Path) -> None:
    value = helper.make_tensor_value_info("v", TensorProto.INT64, [])
    body = helper.make_graph([helper.make_node("Identity", ["v"], ["w"])], "body", [value], [value])
    node = helper.make_node("SequenceMap", ["input_ids"], ["logits"], body=body)
    tiny.save(folder / "model.onnx", _graph(node))


def _weights_at(location: str) -> Callable[[Path], object]:
    def made(folder: Path) -> None:
        tensor = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[1])
        tensor.data_location = TensorProto.EXTERNAL
        tensor.external_data.add(key="location", value=location)
        graph = _graph(helper.make_node("Identity", ["input_ids"], ["logits"]))
        graph.initializer.append(tensor)
        tiny.save(folder / "model.onnx", graph)

    return made


def _link_out(folder: Path) -> None:
    outside = folder.parent / "outside.bin"
    outside.write_bytes(b"\0" * 4)
    (folder / "weights").symlink_to(outside)
    _weights_at("weights")(folder)


def _other_input(folder: Path) -> None:
    node = helper.make_node("Identity", ["pixel_values"], ["logits"])
    tiny.save(folder / "model.onnx", _graph(node, TensorProto.FLOAT, "pixel_values"))


def _of_texts(folder: Path) -> None:
    tiny.save(folder / "model.onnx", tiny.entailed(tiny.word_piece()))


def _of_three_classes(folder: Path) -> None:
    change_config(folder, id2label={"0": "supported", "1": "neutral", "2": "hallucinated"})


def _pickle(name: str) -> Callable[[Path], object]:
    return lambda folder: (folder / name).write_bytes(pickle.dumps({"w": 1}))


def _without(name: str) -> Callable[[Path], object]:
    return lambda folder: (folder / name).unlink()


def _text(name: str, text: str) -> Callable[[Path], object]:
    return lambda folder: (folder / name).write_text(text)


WRONG: dict[str, tuple[Callable[[Path], object], str]] = {
    "no network": (_without("model.onnx"), "has no ONNX model.*encoder convert"),
    "no configuration": (_without("config.json"), "has no configuration"),
    "no fast tokenizer": (_without("tokenizer.json"), "has no fast tokenizer"),
    "empty network": (_text("model.onnx", ""), "not an ONNX model, or a damaged one"),
    "text as network": (_text("model.onnx", "version https://git-lfs"), "damaged"),
    "cut network": (
        lambda folder: (folder / "model.onnx").write_bytes(
            (folder / "model.onnx").read_bytes()[:-40]
        ),
        "not an ONNX model, or a damaged one",
    ),
    "damaged tokenizer": (_text("tokenizer.json", '{"model": {"type": "WordPiece"}}'), "damaged"),
    "nested configuration": (_text("config.json", "[" * 100_000), "not JSON"),
    "configuration is a list": (_text("config.json", "[1]"), "the configuration is not an object"),
    "labels are no object": (lambda at: change_config(at, id2label=["a"]), "numbered from 0"),
    "labels have a gap": (lambda at: change_config(at, id2label={"0": "a", "2": "b"}), "from 0"),
    "labels of another network": (_of_three_classes, "labels and outputs .* differ in number"),
    "no positions": (lambda at: change_config(at, max_position_embeddings=0), "positions"),
    "vocabulary of another": (lambda at: change_config(at, vocab_size=9), "not this model's"),
    "labels unknown": (
        lambda at: change_config(at, id2label={"0": "LABEL_0", "1": "LABEL_1"}),
        "not known which labels mean “supported”.*LettuceDetect: LABEL_0",
    ),
    "labels of another task": (
        lambda at: change_config(at, id2label={"0": "O", "1": "B-PER"}),
        "not known which labels",
    ),
    "pickle": (_pickle("training_args.pt"), "holds a pickle"),
    "pickle named as weights": (_pickle("pytorch_model.bin"), "holds a pickle"),
    "pickle named as network": (_pickle("model.onnx"), "holds a pickle"),
    "custom operator": (_custom_operator, r"operators that no encoder needs.*evil\.ops\.Shell"),
    "custom operator in a branch": (
        _hidden_operator,
        r"operators that no encoder needs.*evil\.ops\.Shell",
    ),
    "loop": (_loop, "no encoder needs.*'Loop'"),
    "loop by another name": (_loop_by_another_name, "no encoder needs.*'SequenceMap'"),
    "weights by absolute path": (_weights_at("/etc/passwd"), "weights lie outside"),
    "weights in the parent": (_weights_at("../outside.bin"), "weights lie outside"),
    "weights by a link": (_link_out, "weights lie outside"),
    "weights missing": (_weights_at("weights.bin"), "weights is missing"),
    "other inputs": (_other_input, "does not read texts.*pixel_values"),
    "classes of texts": (_of_texts, "does not classify every token"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_checkpoint_is_refused_with_what_is_wrong(name: str, tmp_path: Path) -> None:
    spoil, message = WRONG[name]
    folder = tiny.write(tmp_path / "model")
    load(folder)
    spoil(folder)
    with pytest.raises(InputError, match=message):
        load(folder)


def test_a_setting_says_which_labels_mean_supported(tmp_path: Path) -> None:
    folder = tiny.write(tmp_path, labels=["LABEL_0", "LABEL_1"])
    load(folder, supported="LABEL_0")
    load(folder, supported="0")
    with pytest.raises(InputError, match=r"there is no such label; .*found 'yes'"):
        load(folder, supported="yes")
    with pytest.raises(InputError, match="some labels have to mean"):
        load(folder, supported="0,1")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"model": "nowhere/at-all"}, "there is no such checkpoint"),
        ({"weights": "../model.onnx"}, "lies outside the checkpoint's folder"),
        ({"weights": "model_int8.onnx"}, "has no ONNX model"),
        ({"device": "cuda"}, "has no CUDAExecutionProvider"),
        ({"template": "Question: {question}"}, "has no {passages}"),
        ({"calibration": "nowhere.json"}, "cannot read this file"),
    ],
    ids=str,
)
def test_an_option_that_does_not_fit_is_refused(
    options: dict[str, str], message: str, tmp_path: Path
) -> None:
    folder = str(tiny.write(tmp_path))
    with pytest.raises((InputError, UsageError), match=message):
        detector(DetectorSpec(detector="encoder", options={"model": folder, **options}))


def test_weights_beside_the_network_are_read(tmp_path: Path) -> None:
    folder = tiny.write(tmp_path)
    model = onnx.load(folder / "model.onnx")
    onnx.save(
        model,
        folder / "model.onnx",
        save_as_external_data=True,
        location="model.onnx_data",
        size_threshold=0,
    )
    assert (folder / "model.onnx_data").is_file()
    load(folder)


def test_what_is_no_number_is_no_probability(tmp_path: Path) -> None:
    tokenizer = tiny.word_piece()
    graph = tiny.table(tokenizer, [])
    graph.initializer[0].raw_data = np.full(
        (tokenizer.get_vocab_size(), 2), np.nan, np.float32
    ).tobytes()
    spec = DetectorSpec(
        detector="encoder", options={"model": str(tiny.write(tmp_path, graph, tokenizer))}
    )
    said = wait(build(spec).detect(Item(id="i", answer="the tower"))).annotation
    assert said.status is Status.FAILED
    assert "what the model returned is not a probability" in (said.note or "")


def test_a_network_does_not_fill_the_memory_with_what_no_file_shows(tmp_path: Path) -> None:
    tokenizer = tiny.word_piece()
    graph = tiny.table(tokenizer, [])
    graph.node[0].output[0] = "found"
    shape = np.array([1 << 20, 1 << 20], np.int64)
    graph.initializer.append(numpy_helper.from_array(shape, "shape"))
    graph.node.append(helper.make_node("ConstantOfShape", ["shape"], ["large"]))
    graph.node.append(helper.make_node("ReduceMax", ["large"], ["zero"], keepdims=0))
    graph.node.append(helper.make_node("Add", ["found", "zero"], ["logits"]))
    folder = tiny.write(tmp_path, graph, tokenizer)
    with pytest.raises(InputError, match="more than three quarters of this machine's memory"):
        detector(DetectorSpec(detector="encoder", options={"model": str(folder)})).annotate(
            Item(id="i", answer="the tower")
        )
