"""How the time of every command and page grows from n to 2n: of items, and of spans in one item.

Named is what grows faster than n log n by more than a quarter, once it takes a second: a page or
command that is quick today stands still on the dataset that is twice as large. (Below that the
caches of the processor alone make some grow by three.)
"""

from __future__ import annotations

import gc
import json
import logging
import math
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType

from spanlab import doors
from spanlab.doors import Page

_ITEMS, _SPANS = 2_000, 2_500
_SLACK, _SHORT = 1.25, 1.0
_COMMANDS = MappingProxyType(
    {
        "import": "import {file} --dataset again",
        "annotate": "annotate mine --detector offline",
        "score": "score mine --annotator Ben --gold gold",
        "campaign": "campaign mine",
        "datasets": "datasets",
        "agreement": "agreement mine",
        "raters": "raters mine",
        "rates": "rates mine --by lang",
        "vote": "vote mine --annotators Anna,Ben",
        "snapshot": "snapshot mine v1",
        "diff": "diff mine@v1 mine",
        "backup": "backup all.zip",
        **{f"export {end}": f"export mine -o out.{end}" for end in ("jsonl", "csv", "html")},
    }
)
_OF_MANY = MappingProxyType(  # of one item they say that it is too few
    {
        "fit": "fit mine",
        "measure": "measure mine --annotator det",
        "gate": "gate mine --max-rate 1",
    }
)


def main() -> None:
    """Print the seconds of each at n and 2n, and the factor."""
    logging.disable(logging.WARNING)  # AppTest warns that it is no browser
    gc.disable()  # it runs when it will: a step in the time, and no growth
    _measured(_items, 100)  # imports are no growth
    for what, n, write in (("items", _ITEMS, _items), ("spans of one item", _SPANS, _spans)):
        once, twice = _measured(write, n), _measured(write, 2 * n)
        allowed = 2 * math.log(2 * n) / math.log(n) * _SLACK
        print(f"growth from {n:,} to {2 * n:,} {what} (n log n: {allowed / _SLACK:.2f})")
        for name, seconds in once.items():
            factor = twice[name] / seconds
            remark = "  faster than n log n" * (factor > allowed and twice[name] > _SHORT)
            print(f"  {name:14} {seconds:7.2f} s {twice[name]:7.2f} s  × {factor:.2f}{remark}")


def _measured(write: Callable[[Path, int], None], n: int) -> dict[str, float]:
    seconds: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        os.environ["SPANLAB_HOME"] = str(Path(folder, "home"))
        file = Path(folder, "items.jsonl")
        write(file, n)
        _run(f"import {file} --dataset mine")
        for name, command in (_COMMANDS | (_OF_MANY if write is _items else {})).items():
            with _timed(seconds, name):
                _run(command.format(file=file))
        for page in doors.pages():
            with _timed(seconds, f"page {page.title}"):
                _open(page)
    return seconds


@contextmanager
def _timed(seconds: dict[str, float], name: str) -> Iterator[None]:
    start = time.process_time()
    yield
    seconds[name] = time.process_time() - start


def _run(command: str) -> None:
    """Run a command in this process, so that no start of Python counts."""
    from typer.testing import CliRunner

    from spanlab.cli.app import app

    done = CliRunner().invoke(app, command.split())
    if done.exit_code:
        raise SystemExit(f"spanlab {command}: {done.output or done.exception}")


def _open(page: Page) -> None:
    import streamlit as st
    from streamlit import config
    from streamlit.testing.v1 import AppTest

    config.set_option("server.address", "127.0.0.1")
    app = AppTest.from_string(
        f"from pkgutil import resolve_name\nresolve_name({page.place!r})()", default_timeout=600
    )
    app.query_params.update({"dataset": "mine", "reviewer": "Zoe"})
    app.run()
    if app.exception:
        raise SystemExit(f"{page.title}: {app.exception[0].value}")
    st.cache_resource.clear()


def _items(file: Path, n: int) -> None:
    with file.open("w") as stream:
        for number in range(n):
            answer = f"The tower number {number} was built in 1{number:03} by Ada Smith. " * 3
            stream.write(_line(str(number), answer, [(4, 9), (30, 34)]))


def _spans(file: Path, n: int) -> None:
    answer = "It is. " * n
    file.write_text(_line("1", answer, [(7 * at, 7 * at + 2) for at in range(n)]))


def _line(name: str, answer: str, places: list[tuple[int, int]]) -> str:
    kinds = {"Anna": "person", "Ben": "person", "gold": "gold", "det": "detector"}
    annotations = [
        {
            "annotator": who,
            "kind": kind,
            "spans": [
                {"start": start, "end": end - at % 2, "text": answer[start : end - at % 2]}
                for start, end in places
            ],
        }
        for at, (who, kind) in enumerate(kinds.items())
    ]
    passages = [{"text": "The tower was built in 1889 by Gustave Eiffel."}]
    item = {"id": name, "question": f"Who built {name}?", "answer": answer, "passages": passages}
    return json.dumps(item | {"annotations": annotations}) + "\n"


if __name__ == "__main__":
    main()
