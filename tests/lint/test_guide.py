"""The guide: generated parts are those of the code, and what it shows is run as it stands there."""

from __future__ import annotations

import json
import re
import shlex
import tomllib
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from commands import run_here
from guide_blocks import (
    BLOCK,
    FOR_DEVELOPERS,
    PAGES,
    TOPICS,
    blocks,
    commands,
    environment,
    helps,
    path_of,
    text_of,
)
from guide_parts import made_anew, variables, variables_of_roles
from typer.main import get_command

from spanlab.base.errors import UsageError
from spanlab.base.guide import FOLDER, INDEX, guide_page, guide_pages, search_guide
from spanlab.bench.plan import read_plan
from spanlab.cli.app import app
from spanlab.detection import entries
from spanlab.detection.entry import entry_of
from spanlab.formats import read
from spanlab.testing import ModelServer

ROOT = Path(__file__).resolve().parents[2]


PAPERS = [topic for topic in TOPICS if re.search("^##+ The rows of", text_of(topic), re.MULTILINE)]


@pytest.mark.parametrize("topic", PAPERS)
def test_the_rows_of_a_papers_table_are_asked_for_by_options_that_there_are(topic: str) -> None:
    """With the paper's models and data they take days and money: what is typed is checked alone."""
    rows = text_of(topic).partition("### The rows")[2] or text_of(topic).partition("## The rows")[2]
    typed = [code for code in re.findall(r"`([^`]+)`", rows) if code.startswith("spanlab ")]
    for command in typed:
        words = shlex.split(command)
        detector = words[words.index("--detector") + 1] if "--detector" in words else None
        if detector is not None:
            given = [words[at + 1] for at, word in enumerate(words) if word == "--option"]
            entry_of(detector).checked(dict(option.split("=") for option in given))
    usual = topic.removeprefix("detector-")
    options = re.findall(r"^\| [^|]+ \| `(\w+=[\w-]+)`", rows, re.MULTILINE)
    for option in options:
        entry_of(usual).checked(dict([option.split("=")]))
    assert typed or len(options) == 10


@pytest.mark.parametrize("topic", TOPICS)
def test_generated_parts_are_those_of_the_code(topic: str) -> None:
    """`make guide` writes them anew."""
    assert made_anew(text_of(topic)) == text_of(topic)


def test_every_page_is_listed_and_every_detector_has_one() -> None:
    files = [*FOLDER.glob("*.md"), *FOLDER.parent.glob("systems/*/*.md")]
    assert {path.stem for path in files} == {*TOPICS, INDEX}
    text = "".join(text_of(topic) for topic in TOPICS if topic.startswith("detector-"))
    described = re.findall(r"<!-- made: entry ([\w-]+) -->", text)
    assert sorted(described) == sorted(entry.name for entry in entries())


@pytest.mark.parametrize("topic", [*TOPICS, INDEX, *FOR_DEVELOPERS])
def test_what_a_page_links_to_is_there(topic: str) -> None:
    links = re.findall(r"\]\((?!https?:)([^)#]+)", text_of(topic))
    for link in links:
        assert (path_of(topic).parent / link).is_file(), link
    for picture in (link for link in links if link.endswith(".webp")):
        dark = f"{Path(picture).stem}-dark"
        assert (path_of(topic).parent / picture).with_stem(dark).is_file()


@pytest.mark.parametrize("topic", [*TOPICS, INDEX, *FOR_DEVELOPERS])
def test_a_page_is_written_as_forges_and_the_app_read_it(topic: str) -> None:
    text = text_of(topic)
    assert text.startswith("# ")
    assert "\n# " not in BLOCK.sub("", text)
    assert {kind for kind, _ in BLOCK.findall(text)} <= {"sh", "python", "text", "toml"}
    assert "<" not in re.sub(r"`[^`]*`|<!--.*?-->", "", BLOCK.sub("", text))


# Whose commands a page for all names.
NAMES_COMMANDS_OF = dict.fromkeys(("detectors", "install", "troubleshooting"), "offline")
NAMES_COMMANDS_OF |= dict.fromkeys(("formats", "tuning"), "safe")


@pytest.mark.parametrize(
    "topic",
    [
        pytest.param(topic, marks=pytest.mark.system(NAMES_COMMANDS_OF[topic]))
        if topic in NAMES_COMMANDS_OF
        else topic
        for topic in TOPICS
    ],
)
def test_a_command_in_a_sentence_has_the_options_that_it_names(topic: str) -> None:
    group: Any = get_command(app)
    for code in re.findall(r"`spanlab ([a-z][^`]*)`", BLOCK.sub("", text_of(topic))):
        name, *words = code.split()
        command = group.get_command(None, name)
        assert command, code
        command = getattr(command, "commands", {}).get(next(iter(words), ""), command)
        flags = {flag for option in command.params for flag in option.opts} | {"--help"}
        assert {word.split("=")[0] for word in words if word.startswith("--")} <= flags, code


def test_every_command_and_what_belongs_to_it_is_run_by_one_of_its_pages() -> None:
    """But those that need torch, which `make test-torch` installs."""
    typed = [command for topic in TOPICS for command in commands(topic)]
    shown = "".join(block for topic in TOPICS for block in blocks(topic, "text"))
    typed += re.findall(r"^\$ (spanlab .+)", shown, re.MULTILINE)  # by test_transcripts.py
    lines = [command.rpartition("spanlab ")[2] for command in typed]
    ran = {name for line in lines for name in names_of(line)}
    assert {name for name, _ in helps()} - ran <= {"encoder convert", "encoder train"}


def names_of(words: str) -> list[str]:
    """Return the command that some words begin with, such as `jobs`, and `jobs list` after it."""
    first, *others = words.split()
    group: Any = get_command(app)
    inner = getattr(group.get_command(None, first), "commands", {})
    return [first, *(f"{first} {word}" for word in others[:1] if word in inner)]


def test_extras_and_variables_that_it_names_exist() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    text = "".join(map(text_of, (*TOPICS, *FOR_DEVELOPERS)))
    extras = set(re.findall(r"spanlab\[(\w+)\]", text))
    assert extras <= set(project["optional-dependencies"])
    named = set(re.findall(r"\bSPANLAB_[A-Z_]+\b", text))
    assert named <= variables_of_roles() | set(variables())


@pytest.mark.system("ucsc")
def test_the_plan_of_a_bench_that_it_shows_can_be_read(
    tmp_path: Path, model_server: ModelServer
) -> None:
    (plan,) = (block for block in blocks("bench", "toml") if "[[detector]]" in block)
    (tmp_path / "plan.toml").write_text(plan, "utf-8")
    read = read_plan(tmp_path / "plan.toml", tmp_path, {})
    assert read.repeats == 3
    assert read.budget is not None
    assert read.budget.cost == 20.0


def test_the_page_of_commands_has_the_help_of_every_command() -> None:
    page = guide_page("commands").text
    assert re.findall(r"^#+ spanlab (.+)$", page, re.MULTILINE) == [name for name, _ in helps()]
    assert all((about or "").split(".")[0].split()[-1] in page for _, about in helps())


def test_words_are_found_where_they_stand_and_titles_come_first() -> None:
    first, *others = search_guide("certificate")
    assert (first.page.topic, "ertificate" in first.line) == ("measuring", True)
    assert others
    assert [found.page.topic for found in search_guide("OIDC-of-nobody")] == []
    assert search_guide("  ") == []


# Found through the command, first of all, or first on the page Guide of the app.
ASKED_FOR = {
    "thumbs": "traces",
    "privacy": "privacy",
    "GDPR": "privacy",
    "delete": "privacy",
    "own labels": "campaigns",
    "cite": "install",
    "compare prompts": "measuring",
    "Ollama": "models",
    "CI": "measuring",
    "upgrade": "install",
    "German": "detectors",
    "invitation": "team",
    "undo": "review",
    "security": "privacy",
}


@pytest.mark.parametrize(("words", "topic"), ASKED_FOR.items(), ids=str)
def test_a_page_is_found_by_what_its_readers_call_its_subject(
    words: str, topic: str, tmp_path: Path
) -> None:
    done = run_here(["guide", "--search", words], tmp_path, environment(tmp_path))
    assert done.stdout.split()[0] == topic, done.stdout


# What people ask in their first week, in the words that they type, and where the answer is.
QUESTIONS = {
    # a researcher
    "score RAGTruth": {"formats"},
    "sample size": {"rates"},
    "inter-annotator agreement": {"campaigns"},
    "kappa": {"campaigns", "rates"},
    "soft labels": {"words"},
    "offset unicode": {"words", "formats"},
    "p-value": {"rates", "bench"},
    "reproduce": {"install"},
    # who builds a RAG pipeline
    "detector German RAG": {"detectors"},
    "8B": {"detectors"},
    "thumbs rate": {"traces"},
    "compare two prompts": {"three-people", "measuring"},
    "GitHub Actions": {"measuring"},
    "cost limit": {"models"},
    "rate limit": {"models"},
    "own detector": {"detectors", "python"},
    # who leads a campaign
    "two people": {"campaigns"},
    "who is behind": {"campaigns"},
    "attention check": {"campaigns"},
    "guidelines": {"campaigns"},
    "shortcut": {"keys", "review"},
    # who runs the server
    "delete person": {"privacy"},
    "PostgreSQL": {"team"},
    "air-gapped": {"privacy"},
    # Asked when the guide was checked again, of which 9 had an answer then.
    "Mu-SHROOM submission": {"formats"},
    "majority vote": {"campaigns"},
    "significance test": {"bench"},
    "calibration": {"results"},
    "train my own model": {"detectors"},
    "how fast is offline": {"results"},
    "LangChain": {"integrations"},
    "webhook": {"api"},
    "PDF": {"quick-start", "search"},
    "GPU": {"detectors"},
    "vLLM": {"models"},
    "exit code": {"commands"},
    "Prolific": {"campaigns"},
    "qualification test": {"campaigns"},
    "who needs a reminder": {"campaigns"},
    "adjudicate disagreements": {"review"},
    "can I change labels": {"campaigns"},
    "time per item": {"campaigns"},
    "backup": {"team"},
    "audit log": {"team", "privacy"},
    "forgot password": {"team"},
    "health check": {"team"},
    "is the database encrypted": {"privacy"},
    "where is my data": {"install"},
}


@pytest.mark.parametrize("words", QUESTIONS)
def test_a_question_of_the_first_week_finds_its_answer_on_the_first_two_pages(words: str) -> None:
    assert QUESTIONS[words] & {found.page.topic for found in search_guide(words)[:2]}


def test_the_guide_can_be_read_in_an_afternoon() -> None:
    """What it says more than once is said once before it says anything else."""
    pages = [page.written for page in guide_pages() if page.in_menu]
    assert sum(len(text.split()) for text in (*pages, text_of(INDEX))) <= 14_000


def test_no_text_names_a_version_that_there_is_not() -> None:
    now = tuple(map(int, re.findall(r"\d+", version("spanlab"))[:2]))
    sources = [*PAGES.values(), *FOLDER.parent.rglob("*.py")]
    for path in sources:
        for named in re.findall(r"since (?:version )?(\d+\.\d+)", path.read_text("utf-8")):
            assert tuple(map(int, named.split("."))) <= now, (path, named)


def test_a_search_that_finds_nothing_says_so(tmp_path: Path) -> None:
    done = run_here(["guide", "--search", "zebra crossing"], tmp_path, environment(tmp_path))
    assert (done.returncode, done.stdout) == (1, "")
    assert "No page has any of these words" in done.stderr


def test_a_search_for_words_that_no_page_has_together_says_so(tmp_path: Path) -> None:
    done = run_here(["guide", "--search", "zebra certificate"], tmp_path, environment(tmp_path))
    assert done.stdout.split()[0] == "measuring"
    assert "No page has all of these words" in done.stderr


@pytest.mark.system("offline")
@pytest.mark.parametrize("asked", ["offline", "detector-offline", "Detector-Offline ", "off"])
def test_a_topic_is_known_by_name_title_or_beginning(asked: str) -> None:
    assert guide_page(asked).topic == "detector-offline"


def test_an_unknown_topic_says_which_is_close() -> None:
    with pytest.raises(UsageError, match="did you mean 'measuring'"):
        guide_page("mesuring")


def test_the_command_lists_pages_shows_one_and_finds_words(tmp_path: Path) -> None:
    def said(*words: str) -> str:
        done = run_here(["guide", *words], tmp_path, environment(tmp_path))
        assert done.returncode == 0, done.stderr
        return done.stdout

    in_menu = [page.topic for page in guide_pages() if page.in_menu]
    *listed, last = said().splitlines()
    assert [line.split()[0] for line in listed] == in_menu
    assert last.endswith("spanlab guide offline")
    assert "Accept the suggestion" in said("keys")
    assert said("--search", "krippendorff alpha").startswith("words")


def test_the_record_that_it_shows_is_read_as_it_stands(tmp_path: Path) -> None:
    (shown,) = (block for block in blocks("formats", "text") if block.startswith("{"))
    file = tmp_path / "record.jsonl"
    file.write_text(json.dumps(json.loads(shown)), encoding="utf-8")
    (record,) = read(file)
    assert [each.annotator for each in record.annotations] == ["gold", "offline", "Ada"]
    assert record.annotations[0].spans[0].evidence[0].text == "1889"


def test_every_extra_is_on_the_page_that_installs_them() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    listed = set(re.findall(r"^\| `(\w+)` \|", text_of("install"), re.MULTILINE))
    assert listed == set(project["optional-dependencies"]) - {"dev", "llm"}


def test_every_line_of_data_that_it_shows_is_read(tmp_path: Path) -> None:
    """What stands on a page as a line of a file can be imported as it stands."""
    lines = [
        (topic, line)
        for topic in TOPICS
        for line in text_of(topic).splitlines()
        if line.startswith('{"') and '"answer"' in line
    ]
    assert lines
    for number, (topic, line) in enumerate(lines):
        file = tmp_path / f"{number}.jsonl"
        file.write_text(line + "\n", encoding="utf-8")
        (record,) = read(file)
        shown = json.loads(line)
        assert record.item.answer == shown["answer"], topic
        assert len(record.item.passages) == len(shown.get("passages", ()))
