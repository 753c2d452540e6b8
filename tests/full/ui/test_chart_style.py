"""The app's colours can be told apart by everybody, and charts leave room and label few ticks."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from itertools import combinations, islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from crowd import crowd
from streamlit.testing.v1 import AppTest
from traced import traced_file

from optimizers.page import curve
from spanlab.formats import read
from spanlab.oplog.operations import SentOperation, SetStatus
from spanlab.schema import Annotation, AnnotatorKind, Item, Record, SearchTrial, Span, Status
from spanlab.storage import Store
from spanlab.ui.dots import DARK, DONE, FAILED, HEAT, INK, LIGHT, NEUTRAL, scale_of

OpenPage = Callable[..., AppTest]
# What is left of linear RGB without red, green or blue (Machado et al. 2009, table 1, severity 1).
SIGHTS = {
    "normal": [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
    "protanopia": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "deuteranopia": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
    "tritanopia": [
        [1.255528, -0.076749, -0.178779],
        [-0.078411, 0.930809, 0.147602],
        [0.004733, 0.691367, 0.303900],
    ],
}
BOTH = (NEUTRAL, DONE, FAILED)
BACKGROUNDS = {"#ffffff": (*LIGHT, *BOTH), "#1b1a18": (*DARK, *BOTH)}
APART = 0.08  # in OKLab, where 0.02 is just seen


def linear(colour: str) -> np.ndarray[Any, Any]:
    parts = np.array([int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)])
    return np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)


def luminance(colour: str) -> float:
    return float(linear(colour) @ [0.2126, 0.7152, 0.0722])


def oklab(light: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Björn Ottosson's OKLab, in which equal distances look about equally far."""
    cones = [
        [0.4122214708, 0.5363325363, 0.0514459929],
        [0.2119034982, 0.6806995451, 0.1073969566],
        [0.0883024619, 0.2817188376, 0.6299787005],
    ]
    axes = [
        [0.2104542553, 0.7936177850, -0.0040720468],
        [1.9779984951, -2.4285922050, 0.4505937099],
        [0.0259040371, 0.7827717662, -0.8086757660],
    ]
    seen: np.ndarray[Any, Any] = np.array(axes) @ np.cbrt(np.array(cones) @ light)
    return seen


@pytest.mark.parametrize("background", BACKGROUNDS)
def test_every_colour_stands_out_from_the_background(background: str) -> None:
    for colour in BACKGROUNDS[background]:
        low, high = sorted((luminance(colour), luminance(background)))
        assert (high + 0.05) / (low + 0.05) >= 3, colour


@pytest.mark.parametrize("sight", SIGHTS)
@pytest.mark.parametrize("palette", [LIGHT, DARK], ids=["light", "dark"])
def test_any_two_colours_are_told_apart(palette: tuple[str, ...], sight: str) -> None:
    seen = [oklab(np.clip(np.array(SIGHTS[sight]) @ linear(each), 0, 1)) for each in palette]
    assert min(float(np.linalg.norm(a - b)) for a, b in combinations(seen, 2)) > APART


def test_a_scale_has_room_around_what_it_shows() -> None:
    low, high = scale_of([0.2, 0.5]).to_dict()["domain"]
    assert low < 0
    assert 0.5 < high < 0.6
    assert scale_of([-0.03, 0.71]).to_dict()["domain"] == pytest.approx([-0.22, 0.82])  # at ticks
    assert scale_of([0.0]).to_dict()["domain"][1] > 1  # all of nothing: the axis of a share


@pytest.fixture
def datasets(store: Store, tmp_path: Path) -> Store:
    store.import_records("crowd", crowd(20, 24, per_item=6))
    store.import_records("single", islice(crowd(3, 4), 1))
    store.import_records("traced", read(traced_file(tmp_path / "traced.jsonl")))
    answer = "Step 1: So it is. (Logical)"
    span = Span.of(answer, 8, 16, label="Redundancy")
    said = Annotation(annotator="Ann", kind=AnnotatorKind.PERSON, spans=(span,))
    reasoned = Record(item=Item(id="a", answer=answer), annotations=(said,))
    store.import_records("reasoned", [reasoned])
    done = SetStatus(status=Status.DONE)
    for at in range(24):
        for who in (f"annotator-{(at * 6 + n) % 20:02}" for n in range(6)):
            write = SentOperation(f"{at}-{who}", 1, 0, done, seconds=10.0 + at)
            assert not store.apply("crowd", f"i{at:03}", who, [write]).refused
    return store


def specs(app: AppTest) -> list[dict[str, Any]]:
    return [json.loads(chart.proto.spec) for chart in app.get("vega_lite_chart")]


def axes(spec: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The axes of figures in a chart: those that a layer describes itself, not its partners."""
    for part in (*spec.get("layer", ()), *([spec["spec"]] if "spec" in spec else [])):
        yield from axes(part)
    for channel in ("x", "y"):
        axis = spec.get("encoding", {}).get(channel, {})
        if axis.get("type") == "quantitative" and "title" in axis:
            yield axis


def test_all_charts_have_few_ticks_room_at_the_edge_and_the_palette(
    open_page: OpenPage, datasets: Store
) -> None:
    def charts(view: str, dataset: str = "crowd", **chosen: object) -> list[dict[str, Any]]:
        page = {"Models": "measure", "Progress": "campaign"}.get(view, "compare")
        app = open_page(page, view=view, dataset=dataset)
        for key, value in chosen.items():
            app.session_state[f"spanlab.{key.replace('_', '-')}"] = value
        if chosen:
            app.run()
        assert not app.exception
        return specs(app)

    toggles = ("Calibration of detectors", "Labels against the reference")
    scores = open_page("compare", view="Scores", dataset="crowd")
    for label in toggles:
        scores.toggle(key=f"spanlab.scores.{label}").set_value(True)
    drawn = [
        *specs(scores.run()),
        *charts("Scores", per_language=True),
        *charts("Scores", "single"),
        *charts("Models"),
        *charts("Models", "single"),
        *charts("Error stages", "traced"),
        *charts("Reasoning", "reasoned"),
    ]
    for view in ("Items by day", "Labels", "Agreement over time", "Time per item"):
        drawn += charts("Progress", campaign=view)
    trials = [
        SearchTrial(fold=0, number=n, score=1.0, items=4, full=True, stage="search")
        for n in range(3)
    ]
    drawn.append(curve(trials).to_dict())
    assert len(drawn) == 15
    for spec in drawn:
        for axis in axes(spec):
            assert axis["axis"]["tickCount"] == 5
            whole = axis["axis"].get("tickMinStep") == 1  # bars of whole items, from 0
            assert whole or axis["scale"]["domain"][0] < 0
        assert set(re.findall("#[0-9a-f]{6}", json.dumps(spec))) <= {NEUTRAL, *HEAT, *INK}
