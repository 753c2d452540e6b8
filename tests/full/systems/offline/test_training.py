"""Training, and the model file that it leaves."""

from __future__ import annotations

import io
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from spanlab.base.errors import InputError
from spanlab.schema import Annotation, AnnotatorKind, Item, Passage, Record, Span
from spanlab.systems.offline.detector import OfflineDetector
from spanlab.systems.offline.learners import BoostingSettings, NetSettings, export, fit, perceptrons
from spanlab.systems.offline.model import SHIPPED, MixedRater, digest, load, parse
from spanlab.systems.offline.own_labels import ModelCard
from spanlab.systems.offline.raters import NetRater, TrainingRows
from spanlab.systems.offline.training import TrainingRecipe, folds, subjects, train_offline

NETS = NetSettings(count=2, units=3, epochs=3)
SMALL = TrainingRecipe(BoostingSettings(bags=2, trees=5, least_words=5), NETS)
PLACES = ("Skagen", "Gedser", "Ribe", "Esbjerg", "Odense", "Viborg", "Randers", "Horsens", "Vejle")


def records(count: int) -> list[Record]:
    """Items about lighthouses; in every second one the year is wrong."""
    return [record(number) for number in range(count)]


def record(number: int) -> Record:
    place, year = PLACES[number % len(PLACES)], 1800 + 3 * number
    said = year if number % 2 else year + 40
    answer = f"The lighthouse of {place} was opened in {said}."
    wrong = () if number % 2 else (Span.of(answer, len(answer) - 5, len(answer) - 1),)
    text = f"The old lighthouse near {place} opened in {year}. It is {number + 20} metres tall."
    more = f"Ships have seen the lighthouse at {place} since {year}, when it was opened."
    item = Item(
        id=f"l{number}",
        lang="en",
        question=f"When was the lighthouse of {place} opened?",
        answer=answer,
        passages=(Passage(text=text), Passage(text=more)),
    )
    return Record(
        item=item, annotations=(Annotation(annotator="gold", kind=AnnotatorKind.GOLD, spans=wrong),)
    )


def test_the_same_records_give_the_same_bytes_and_another_seed_gives_others() -> None:
    one = train_offline(records(24), recipe=SMALL).dump()
    again = train_offline(records(24), recipe=SMALL).dump()
    other = train_offline(records(24), recipe=replace(SMALL, seed=1)).dump()
    assert one == again
    assert one != other


def test_a_model_that_was_written_rates_as_the_one_that_was_trained(tmp_path: Path) -> None:
    model = train_offline(records(24), recipe=SMALL)
    (tmp_path / "m.npz").write_bytes(model.dump())
    read = load(tmp_path / "m.npz")
    for one in records(4):
        assert OfflineDetector(read).annotate(one.item) == OfflineDetector(model).annotate(one.item)


@pytest.mark.parametrize("leaves", [2, 16, 17, 64])
def test_trees_give_what_scikit_learn_gives(leaves: int) -> None:
    rng = np.random.default_rng(7)
    table = rng.normal(size=(3000, 6)).astype(np.float32)
    table[:, 5] = rng.integers(0, 3, 3000)
    target = np.clip(table[:, 0] * table[:, 1] + (table[:, 5] == 1), 0, 1).astype(np.float64)
    rows = TrainingRows(tuple("abcdef"), table, target, np.ones(3000), np.arange(3000) // 10)
    how = BoostingSettings(bags=2, trees=20, leaves=leaves, features=0.5, least_words=10)
    models = [fit(rows, how, seed) for seed in range(how.bags)]
    expected = np.mean([model.predict(table) for model in models], axis=0)
    trees = export(models, rows.names)
    shuffled = (5, 3, 0, 1, 2, 4)  # columns are found by name
    names = tuple(rows.names[at] for at in shuffled)
    assert np.abs(trees.predict(table[:, shuffled], names) - expected).max() < 1e-9


def test_networks_give_the_mean_of_what_scikit_learns_give() -> None:
    rng = np.random.default_rng(7)
    table = rng.normal(3, 2, size=(500, 4)).astype(np.float32)
    table[:, 3] = 1  # a column that never varies
    table[0, 0] = 1e6  # and one value that is far from all others
    target = np.clip(table[:, 1] / 5, 0, 1).astype(np.float64)
    weight = np.linspace(1, 2, 500)
    rows = TrainingRows(tuple("abcd"), table, target, weight, np.arange(500))
    how = NetSettings(count=3, units=8, epochs=100, rate=0.01, ridge=0.01)
    each = [perceptrons(rows, replace(how, count=1), seed) for seed in (4, 5, 6)]
    expected = np.mean([one.predict(table, rows.names) for one in each], axis=0)
    nets = perceptrons(rows, how, 4)
    shuffled = (2, 0, 3, 1)  # columns are found by name
    names = tuple(rows.names[at] for at in shuffled)
    assert nets.predict(table[:, shuffled], names) == pytest.approx(expected, abs=1e-5)
    assert np.corrcoef(expected, target)[0, 1] > 0.9
    assert not nets.predict(table[:0], rows.names).size


def test_a_network_is_a_sum_of_rectified_units_and_counts_half_beside_trees() -> None:
    """By hand: 3 and 100 become 1 and 4 (the farthest); the units give 5 and 0 (of -3)."""
    mean, scale, weights, bias, output, base = (
        np.array(each, dtype=np.float32)
        for each in ([1, 0], [2, 1], [[1, 1], [1, -1]], [0, 0], [0.2, 7], [0.5])
    )
    nets = NetRater(("a", "b"), mean, scale, weights, bias, output, base)
    table = np.array([[3, 100]], dtype=np.float32)
    assert nets.predict(table, ("a", "b")) == pytest.approx([1.5])
    one = np.ones(40)
    rows = TrainingRows(("a",), np.zeros((40, 1), dtype=np.float32), 0.5 * one, one, np.arange(40))
    trees = export([fit(rows, BoostingSettings(least_words=30), 0)], rows.names)  # always .5
    assert MixedRater(trees, nets).predict(table, ("a", "b")) == pytest.approx([1.0])
    assert MixedRater(trees).predict(table, ("a", "b")) == pytest.approx([0.5])


def test_trees_that_ask_nothing_give_the_mean_everywhere() -> None:
    one = np.ones(40)
    table = np.zeros((40, 2), dtype=np.float32)
    rows = TrainingRows(("a", "b"), table, 0.25 * one, one, np.arange(40))
    trees = export([fit(rows, BoostingSettings(least_words=30), 0)], rows.names)
    assert trees.names == ()
    assert trees.predict(table[:3], rows.names) == pytest.approx([0.25] * 3)


def test_a_small_model_learns_that_a_contradicted_year_is_wrong() -> None:
    how = TrainingRecipe(BoostingSettings(bags=1, trees=40, least_words=5))
    detector = OfflineDetector(train_offline(records(60), recipe=how))
    unseen = record(100).item
    (hard,) = detector.annotate(unseen).hard or ()
    assert unseen.answer[hard.start : hard.end] == "2140"
    assert detector.annotate(record(101).item).hard == ()


def test_progress_is_told() -> None:
    told: list[tuple[str, int, int]] = []
    train_offline(records(20), recipe=SMALL, on_progress=lambda *progress: told.append(progress))
    assert told[0] == ("reading", 1, 20)
    assert told[19] == ("reading", 20, 20)
    assert told[-1] == ("learning", 8, 8)


def test_folds_hold_out_every_item_once() -> None:
    found = list(folds(records(66), 2, recipe=SMALL))
    held_out = [{one.item.id for one in fold.held_out} for fold in found]
    assert held_out[0].isdisjoint(held_out[1])
    assert held_out[0] | held_out[1] == {f"l{n}" for n in range(66)}


def test_one_subject_in_two_languages_is_one_subject() -> None:
    tower = "Tower Stone Bridge Harbour Museum Castle Garden Market Square Chapel 18580 19630"
    other = "Violin Sonata Concerto Quartet Overture Prelude Nocturne Fantasy Ballade 17910 18100"

    def item(name: str, lang: str, text: str) -> Item:
        return Item(id=name, lang=lang, answer="It is.", passages=(Passage(text=text),))

    found = subjects(
        [
            item("a", "en", tower),
            item("b", "en", f"{tower} Pier"),  # of one language: two questions, two items
            item("c", "sv", other),
            item("d", "fi", f"Torni. {tower}"),
        ]
    )
    assert found["a"] == found["d"]
    assert found["c"] == "c"


def test_too_few_items_are_refused() -> None:
    with pytest.raises(InputError, match="at least 20 labelled items with passages"):
        train_offline(records(19), recipe=SMALL)


def test_an_item_without_the_label_is_refused() -> None:
    with pytest.raises(InputError, match="no finished annotation by 'anna'"):
        train_offline(records(20), annotator="anna", recipe=SMALL)


def test_without_scikit_learn_the_extra_is_named() -> None:
    code = (
        "import sys; sys.modules['sklearn'] = None\n"
        "import numpy as np\n"
        "from spanlab.systems.offline.learners import BoostingSettings, fit\n"
        "from spanlab.systems.offline.raters import NetRater, TrainingRows\n"
        "one = np.ones(1)\n"
        "rows = TrainingRows(('a',), one[:, None], one, one, one.astype(int))\n"
        "fit(rows, BoostingSettings(), 0)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "UsageError: training needs scikit-learn: pip install 'spanlab[train]'" in done.stderr


def test_detecting_needs_neither_scikit_learn_nor_spacy() -> None:
    code = (
        "import sys\n"
        "from spanlab.detection import detector\n"
        "from spanlab.schema import Item\n"
        "detector('offline').annotate(Item(id='x', answer='It opened in 1858.'))\n"
        "sys.exit(bool({'sklearn', 'spacy', 'scipy', 'pandas'} & set(sys.modules)))\n"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_shipped_model_is_small_and_is_the_one_of_its_card() -> None:
    data = SHIPPED.read_bytes()
    card = ModelCard.model_validate_json(SHIPPED.with_suffix(".json").read_text(encoding="utf-8"))
    assert len(data) == card.size < 2_000_000
    assert digest(data) == card.sha256
    assert card.command.startswith("spanlab train-offline ")
    assert {scores.mode for scores in card.scores} == {
        "with passages",
        "closed-book",
        "another item's passages",
        "without passages",
        "made from its passages",
    }


@pytest.mark.parametrize(
    ("data", "message"),
    [
        pytest.param(b"", "not a model", id="empty"),
        pytest.param(b"PK\x03\x04 and no more", "not a model", id="half"),
        pytest.param(b"\x80\x04K\x01.", "not a model", id="pickle"),
    ],
)
def test_what_is_no_model_is_refused(data: bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / "m.npz"
    path.write_bytes(data)
    with pytest.raises(InputError, match=message) as caught:
        load(path)
    assert caught.value.file == str(path)


def test_a_missing_model_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no model here"):
        load(tmp_path / "none.npz")


def test_an_archive_of_objects_is_not_loaded(tmp_path: Path) -> None:
    path = tmp_path / "m.npz"
    np.savez(path, head=np.array({"format": "spanlab-offline"}, dtype=object))
    with pytest.raises(InputError, match="not a model"):
        load(path)


@pytest.mark.parametrize(
    "child",
    [
        pytest.param(lambda child: child + 1_000_000, id="outside"),
        pytest.param(lambda child: child * 0, id="in-a-circle"),
        pytest.param(lambda child: child * 0 + len(child) - 2, id="of-another-tree"),
    ],
)
def test_a_damaged_tree_is_refused(
    child: Callable[[NDArray[np.int32]], NDArray[np.int32]], tmp_path: Path
) -> None:
    with np.load(SHIPPED) as file:
        arrays = {name: file[name] for name in file.files}
    arrays["given.share.child"] = child(arrays["given.share.child"])
    np.savez(tmp_path / "m.npz", **arrays)
    with pytest.raises(InputError, match="damaged"):
        parse((tmp_path / "m.npz").read_bytes(), "m.npz")


@pytest.mark.parametrize(
    ("field", "damage"),
    [
        pytest.param("bias", lambda array: array[1:], id="a unit less"),
        pytest.param("mean", lambda array: array[1:], id="a column less"),
        pytest.param("output", lambda array: array * np.float32("nan"), id="no number"),
        pytest.param("scale", lambda array: array * 0, id="no scale"),
        pytest.param("weights", lambda array: array.astype(np.float64), id="another type"),
    ],
)
def test_a_damaged_network_is_refused(
    field: str, damage: Callable[[NDArray[np.float32]], NDArray[Any]]
) -> None:
    with np.load(SHIPPED) as file:
        arrays = {name: file[name] for name in file.files}
    arrays[f"blind.anyone.nets.{field}"] = damage(arrays[f"blind.anyone.nets.{field}"])
    packed = io.BytesIO()
    np.savez(packed, **arrays)
    with pytest.raises(InputError, match="networks are damaged"):
        parse(packed.getvalue(), "m.npz")
