"""Files as people bring them become what they mean: small ones of every shape (``reading_cases``).

A case has a file (or several, or commands, or a snippet of Python) and what must hold after it;
where there are several such, one of them. None says nothing about a field.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest

from spanlab.data.import_preview import preview_import
from spanlab.formats import ReadOptions, dumps, read

Run = Callable[..., CompletedProcess[str]]

_HERE = Path(__file__).parents[2] / "cli"
_CASES = [
    json.loads(line)
    for line in (_HERE / "reading_cases.jsonl").read_text(encoding="utf-8").splitlines()
]
_WRONG = {"refuted", "not-supported", "conflicting"}


def _filled(record: dict[str, Any]) -> set[str]:
    return {name for name, value in record.items() if value not in (None, "", [], {})}


def _named(door: str) -> list[Any]:
    """Return the cases of a door: siblings of a kind need no command each, unless they have one."""
    cases = [case for case in _CASES if _door(case) == door]
    return [pytest.param(case, id=case["name"]) for case in cases]


def _all_hold(cases: list[Any], check: Callable[[dict[str, Any]], object]) -> None:
    """Check cases of which a test each would cost more than the check; all that fail are named."""
    failed = []
    for case in cases:
        try:
            problem = check(case)
        except Exception as error:
            error.add_note(f"the case {case['name']}")
            raise
        if problem:
            failed.append(f"{case['name']}: {problem}")
    assert not failed, "\n".join(failed)


def _door(case: dict[str, Any]) -> str:
    if "python" in case:
        return "python"
    expects = case["expect"]
    is_plain = isinstance(expects, dict) and not {"args", "steps", "files"} & _filled(case)
    is_sibling = case["finding"] == "siblings" and is_plain and not expects.get("status")
    return "reader" if is_sibling else "command"


def _write(folder: Path, case: dict[str, Any]) -> None:
    files = dict(case.get("files") or {})
    if case.get("file") and ("content" in case or "base64" in case):
        files[case["file"]] = {"base64": case["base64"]} if "base64" in case else case["content"]
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        packed = isinstance(content, dict)
        path.write_bytes(base64.b64decode(content["base64"]) if packed else content.encode())


@pytest.mark.parametrize("case", _named("command"))
def test_a_file_becomes_what_it_means(tmp_path: Path, spanlab: Run, case: dict[str, Any]) -> None:
    _write(tmp_path, case)
    steps = case.get("steps") or [
        ["import", case["file"], "--dataset", "{dataset}", *case.get("args", [])]
    ]
    told = ""
    for step in steps:
        done = spanlab(*(part.replace("{dataset}", "x") for part in step), COLUMNS="300")
        output = done.stdout + done.stderr
        told = output if case.get("last") else told + output
    records: list[dict[str, Any]] = []
    spanlab("export", "x", "--format", "spanlab", "-o", "out.jsonl")
    if (tmp_path / "out.jsonl").exists():
        lines = (tmp_path / "out.jsonl").read_text(encoding="utf-8").splitlines()
        records = [record for record in map(json.loads, lines) if "answer" in record]
    expected = case["expect"] if isinstance(case["expect"], list) else [case["expect"]]
    problems = [_problem(one, done.returncode, told, records) for one in expected]
    assert "" in problems, f"{problems}\n{told}"


def test_its_siblings_are_read_likewise(tmp_path: Path) -> None:
    def problem(case: dict[str, Any]) -> str:
        _write(tmp_path / case["name"], case)
        told: list[str] = []
        options = ReadOptions(on_warning=told.append)
        found = read(tmp_path / case["name"] / case["file"], options)
        records = [json.loads(dumps(record)) for record in found]
        return _problem(case["expect"], 0, "\n".join(told), records)

    _all_hold([case for case in _CASES if _door(case) == "reader"], problem)


@pytest.mark.parametrize("case", _named("python"))
def test_rows_in_memory_are_read_as_files_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, case: dict[str, Any]
) -> None:
    monkeypatch.chdir(tmp_path)
    exec(compile(case["python"], case["name"], "exec"), {"__name__": "__main__"})


def _problem(want: dict[str, Any], status: int, told: str, records: list[dict[str, Any]]) -> str:
    """Return what is not as expected; "" if all is."""
    if bool(want.get("status", 0)) != bool(status):
        return f"status {status}"
    if unsaid := _unsaid(want, told):
        return f"does not say {unsaid}"
    if status:
        return ""
    if want.get("items") is not None and len(records) != want["items"]:
        return f"{len(records)} items"
    ordered = _ordered(records, want.get("answers"))
    if ordered is None:
        return f"answers {[record['answer'] for record in records]}"
    return _fields_problem(want, ordered) or _marks_problem(want, records)


def _unsaid(want: dict[str, Any], told: str) -> list[str]:
    text = " ".join(told.split()).lower()
    words = [said for said in want.get("says") or () if " ".join(said.split()).lower() not in text]
    patterns = want.get("says_re") or ()
    return words + [one for one in patterns if not re.search(one, told, re.IGNORECASE)]


def _ordered(
    records: list[dict[str, Any]], answers: list[str | None] | None
) -> list[dict[str, Any]] | None:
    """Return the records in the order of the answers; None if one is not there."""
    if answers is None:
        return records
    rest, ordered = list(records), []
    for answer in answers:
        found = next((r for r in rest if answer is None or r["answer"] == answer), None)
        if found is None:
            return None
        rest.remove(found)
        ordered.append(found)
    return ordered


_READ: dict[str, Callable[[dict[str, Any]], Any]] = {
    "questions": lambda record: record.get("question", ""),
    "passages": lambda record: [passage["text"] for passage in record.get("passages", [])],
    "langs": lambda record: record.get("lang"),
    "marked": lambda record: any(map(_is_marked, record.get("annotations", []))),
}


def _is_marked(annotation: dict[str, Any]) -> bool:
    claims = annotation.get("claims", [])
    wrong = any(claim.get("verdict") in _WRONG for claim in claims)
    called = annotation.get("answer_hallucinated")
    return bool(annotation.get("spans") or annotation.get("hard") or wrong or called)


def _fields_problem(want: dict[str, Any], records: list[dict[str, Any]]) -> str:
    for field, value_of in _READ.items():
        for record, value in zip(records, want.get(field) or (), strict=False):
            if value is not None and value_of(record) != value:
                return f"{field} {value_of(record)!r}"
    aside = {"question", "answer", "passages", "annotations"}
    beside = [{k: v for k, v in record.items() if k not in aside} for record in records]
    kept = json.dumps(beside, ensure_ascii=False)
    lost = [text for text in want.get("meta_has") or () if text not in kept]
    return f"lost {lost}" if lost else ""


def _marks_problem(want: dict[str, Any], records: list[dict[str, Any]]) -> str:
    annotations = [a for record in records for a in record.get("annotations", [])]
    labels = {span.get("label") for a in annotations for span in a.get("spans", [])}
    if missing := [label for label in want.get("labels") or () if label not in labels]:
        return f"no label {missing}: {labels}"
    written = json.dumps(annotations, ensure_ascii=False)
    if missing := [note for note in want.get("notes") or () if note not in written]:
        return f"no note {missing}"
    for name, spans, *kind in want.get("marks") or ():
        places = sorted(map(tuple, spans))
        if not any(
            name in (None, a["annotator"])
            and (not kind or kind[0] == a["kind"])
            and sorted({(s["start"], s["end"]) for s in a.get("spans", [])}) == places
            for a in annotations
        ):
            return f"no annotation {name} {places} {kind}: {annotations}"
    return ""


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _is_read_whole(case: dict[str, Any]) -> bool:
    """Say whether a case is JSON Lines and read with all its lines."""
    is_lines = str(case.get("file")).endswith(".jsonl") and not {"steps", "args"} & _filled(case)
    return is_lines and not any(one.get("status") for one in _listed(case["expect"]))


def test_no_field_of_a_line_is_without_a_word_in_the_report(tmp_path: Path) -> None:
    def unsaid(case: dict[str, Any]) -> list[str]:
        _write(tmp_path / case["name"], case)
        told = " ".join(preview_import([tmp_path / case["name"] / case["file"]]).fields)
        records = [json.loads(line.replace("NaN", "null")) for line in case["content"].splitlines()]
        fields = set[str]().union(*map(_filled, records))
        return [field for field in fields if field not in told]

    _all_hold(list(filter(_is_read_whole, _CASES)), unsaid)


def test_a_dry_run_ends_with_a_recipe_by_which_others_are_read(
    tmp_path: Path, spanlab: Run
) -> None:
    for name, said in (("a", "Oslo."), ("b", "Rome.")):
        rows = [{"o": {"t": said}, "question": "Capital?", "ok": "bad"}]
        (tmp_path / f"{name}.json").write_text(json.dumps({"n": 1, "r": {"items": rows}}))
    how = ["--column", "answer=o.t", "--hallucinated-if", "ok=bad"]
    shown = spanlab("import", "a.json", "--dataset", "a", "--dry-run", *how)
    assert shown.returncode == 0, shown.stderr
    (tmp_path / "ours.toml").write_text(shown.stdout[shown.stdout.index("# How it is read") :])
    done = spanlab("import", "b.json", "--dataset", "b", "--recipe", "ours.toml")
    assert done.returncode == 0, done.stderr
    (line,) = spanlab("export", "b", "--format", "spanlab").stdout.splitlines()
    record = json.loads(line)
    assert (record["answer"], record["question"]) == ("Rome.", "Capital?")
    assert record["annotations"][0]["answer_hallucinated"] is True
    annotated = spanlab("annotate", "b.json", "--detector", "offline", "--recipe", "ours.toml")
    assert annotated.returncode == 0, annotated.stderr
