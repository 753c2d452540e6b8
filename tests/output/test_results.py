"""Tables of results as text, CSV and JSON, and figures as people read them."""

from __future__ import annotations

import cProfile
import json
import re
from typing import Any

import pytest
from rich.cells import cell_len

from spanlab.output.figures import figure, sampling_alone
from spanlab.output.tables import (
    Cell,
    Column,
    MeanInterval,
    ResultTable,
    Unit,
    as_csv,
    as_json,
    as_text,
    several,
    write_cell,
)

WHOLE = MeanInterval(mean=0.513, low=0.498, high=0.53)


def table(*rows: tuple[Cell, ...], **more: Any) -> ResultTable:
    columns = (
        Column(key="name", title="Name"),
        Column(key="items", title="Items", unit="count"),
        Column(key="iou", title="IoU", unit="score"),
    )
    return ResultTable(key="t", title="Scores", columns=columns, rows=rows, **more)


@pytest.mark.parametrize(
    ("value", "written"),
    [
        pytest.param(-0.0011, ".00", id="rounds to zero from below"),
        pytest.param(-0.0, ".00", id="negative zero"),
        pytest.param(-0.006, "-.01", id="still negative"),
        pytest.param(0.126, ".13", id="positive"),
        pytest.param(1.0, "1.00", id="one"),
        pytest.param(-0.999, "-1.00", id="rounds to minus one"),
    ],
)
def test_a_score_has_nothing_before_its_point_and_no_minus_at_zero(
    value: float, written: str
) -> None:
    assert figure(value, 2) == written


@pytest.mark.parametrize(
    ("cell", "unit", "written"),
    [
        (WHOLE, "score", ".513 [.498, .530]"),
        (WHOLE, "share", "51.3 % [49.8, 53.0]"),
        (MeanInterval(mean=0.1, low=-0.02, high=0.18), "difference", "+.100 [-.020, +.180]"),
        (-0.0001, "difference", "+.000"),
        (0.0004, "p", "< .001"),
        (0.25, "p", ".250"),
        (0.003, "share", "0.3 %"),
        (-0.0001, "share", "0.0 %"),
        (12345, "count", "12,345"),
        (0.8, "count", "0.800"),
        (59.25, "seconds", "59.250 s"),
        (3725.0, "seconds", "1 h 02 min"),
        (0.00213, "dollars", "$0.0021"),
        (None, "score", "–"),
        ("a\x1b[2Jb\n\u202ec", "text", "a·[2Jb ·c"),
        ("خانه‌ها 👩‍🚀", "text", "خانه‌ها 👩‍🚀"),
    ],
)
def test_each_unit_is_written_one_way(cell: Cell, unit: Unit, written: str) -> None:
    assert write_cell(cell, Column(key="x", title="X", unit=unit)) == written


def test_of_one_item_alone_there_is_no_interval() -> None:
    assert [several(WHOLE, 2), several(WHOLE, 1), several(None, 2)] == [WHOLE, 0.513, None]
    assert several(WHOLE, 2, groups=2) == 0.513


def test_text_lines_up_by_what_is_seen_and_is_never_cut() -> None:
    long = "x" * 300
    names = ("plain", "模型一号", "שלום", "e\u0301te", "[bold]not markup[/bold]", long)
    text = as_text([table(*((name, 1, WHOLE) for name in names), remarks=("Said.",))])
    title, head, *rows, remark = text.splitlines()
    assert (title, remark) == ("Scores", "Said.")
    assert head.split() == ["Name", "Items", "IoU"]
    for name, row in zip(names, rows, strict=True):
        assert row.startswith(name)
        assert row.endswith("    1  .513 [.498, .530]")
        assert cell_len(row) == cell_len(rows[0])
    assert "\x1b" not in text


def test_on_a_terminal_cells_are_folded_and_names_keep_their_direction_to_themselves() -> None:
    names = ("a" * 70, "שלום")
    text = as_text([table(*((name, 1, WHOLE) for name in names))], width=40, colour=True)
    seen = [re.sub("\x1b\\[\\d*m|[\u2068\u2069]", "", line) for line in text.splitlines()]
    assert all(cell_len(line) <= 40 for line in seen)
    assert text.count("a") == 70 + "Name".count("a")
    assert "…" not in text
    assert "\u2068שלום\u2069" in text
    assert text.startswith("\x1b[1mScores\x1b[0m")


def test_a_table_without_rows_says_so_in_a_sentence() -> None:
    assert as_text([table(empty="Nothing yet.", remarks=("Try.",))]) == (
        "Scores\nNothing yet.\nTry."
    )


def test_csv_has_plain_values_and_three_columns_for_an_interval() -> None:
    assert as_csv(table(('a "b", c', 1200, WHOLE), ("d", 1, None))) == (
        '"Name","Items","IoU","IoU from","IoU to"\n"a ""b"", c",1200,0.513,0.498,0.53\n'
        '"d",1,"","",""\n'
    )
    assert as_csv(table(("a", 1, 0.5))) == '"Name","Items","IoU"\n"a",1,0.5\n'


def test_the_work_for_a_csv_grows_with_its_rows_and_not_with_their_square() -> None:
    """The pairs of 99 annotators took a minute."""

    def calls(n_rows: int) -> int:
        profile = cProfile.Profile()
        profile.runcall(as_csv, table(*[("a", 1, 0.5)] * n_rows))
        return sum(entry.callcount for entry in profile.getstats())

    assert calls(400) < 3 * calls(200)


def test_json_is_the_figures_that_a_result_names_itself() -> None:
    class Found:
        def tables(self) -> tuple[ResultTable, ...]:
            return ()

        def figures(self) -> dict[str, Any]:
            return {"ä": 0.5}

    assert json.loads(as_json(Found())) == {"ä": 0.5}
    assert as_json(Found(), ascii_only=False) == '{\n "ä": 0.5\n}'


def test_what_intervals_lack_is_said_with_the_names_of_those_who_counted() -> None:
    assert "“a” makes" in sampling_alone(["a"])
    assert "“a”, “b”, “c” and 2 more make" in sampling_alone(list("abcde"))
