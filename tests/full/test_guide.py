"""The guide: generated parts are those of the code, and what it shows is run as it stands there."""

from __future__ import annotations

import json
import os
import pty
import re
import runpy
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from itertools import pairwise
from pathlib import Path
from urllib.parse import unquote, urlsplit

import dataset_hub
import fake_hub
import pytest
import tiny_encoders
from agent_answers import agent
from commands import SERVERS, run_here, serving
from dataset_hub import TOKEN, DatasetHub
from fake_hub import Hub
from forks import run_forked
from gold_answers import GoldAnswers, better_when_asked
from guide_blocks import (
    FOR_DEVELOPERS,
    TOPICS,
    blocks,
    commands,
    environment,
    helps,
    is_ours,
)
from ports import free_port
from trace_homes import KEYS, living

from spanlab.formats import read
from spanlab.testing import ModelRequest, ModelServer, ScriptedReply, say

ROOT = Path(__file__).resolve().parents[2]


SPANS = ROOT / "tests" / "cli" / "peers" / "phoenix_get_spans.json"


NEWEST = {
    "3f2a": "jobs",
    "1f2e3d4c5b6a": "keys",
    "9c8b7a6d5e4f": "invitations",
    "5e4f3d2c1b0a": "reports",
}  # stand for the first that a list has


PHOENIX = "http://localhost:6006"  # as pages name it


EXAMPLE = re.compile(r"^\s*((?:[A-Z_]+=\S+ )*spanlab .+)$", re.MULTILINE)
NEEDING_MORE = {  # than a third of the samples: files, judged steps, torch, a minute, a login
    "invitations",
    "tools",
    "import",
    "optimize",
    "train-offline",
    "fit",
    "encoder convert",
    "encoder train",
}


def bare(command: str) -> str:
    """Return a command without a remark and the number of a port, which is none of its own."""
    return re.sub(r" --port \d+|  #.*", "", command)


SHOWN = {bare(command) for topic in TOPICS for command in commands(topic)}
# Of answers that cite, which the samples do not: run by tests/measure/test_citations.py.
CITING = {"spanlab gate mine --annotator citations --min-citation-precision .8"}
EXAMPLES: dict[str, list[str]] = {}  # by command, but for those that a page or another help has


for name, text in helps():
    ran = SHOWN.union(CITING, *EXAMPLES.values())
    others = [command for command in EXAMPLE.findall(text) if bare(command) not in ran]
    if others and name not in NEEDING_MORE:
        EXAMPLES[name] = others


MEASURED = ["spanlab measure mine --annotator offline --by lang --within .1"]


PEOPLE = [
    f"spanlab annotators rename mine synthetic-annotator-{number} {name}"
    for number, name in enumerate(("anna", "ben", "ana"), 1)
]


TUNED = [
    "spanlab optimize mine --detector ucsc-extract --trials 1 --folds 0 --name short-spans",
    "spanlab programs export short-spans -o short-spans.json",
    "spanlab programs import short-spans.json --name first-try",
]


TEST_RUN = [
    "spanlab export mine --annotator offline --format mushroom -o submission.jsonl",
    "spanlab import submission.jsonl --dataset mine --as test-run",
]


KEPT = ["spanlab snapshot mine v1", "spanlab snapshot mine v2"]


FETCHED = ["spanlab encoder fetch ORGANISATION/NAME"]


OFFLINE = "spanlab export mine --annotator offline"


REVIEWED = "spanlab export mine --annotator anna -o reviewed.jsonl"


BEFORE = {
    "campaign": [  # of which not all have gold labels: else all would be check items
        "spanlab import data/support.jsonl --dataset mine",
        "spanlab datasets mine --overlap 2 --assign Ada --assign Ben",
    ],
    "push": [
        "spanlab import spans.json --dataset traces",
        "spanlab annotate traces --detector offline",
    ],
    "people forget": ["spanlab datasets mine --overlap 2 --assign anna --assign ben"],
    "gate": [
        *MEASURED,
        "spanlab import data/samples.jsonl --dataset last-week",
        "spanlab annotate last-week --detector offline",
        MEASURED[0].replace("mine", "last-week"),
    ],
    "annotate": ["spanlab import data/claims.jsonl --dataset claims"],
    "calibrate": FETCHED,
    "encoder check": FETCHED,
    "score": [
        *(f"{OFFLINE} -o {name}.jsonl" for name in ("pred", "mine", "theirs", "pred/en")),
        "spanlab annotate claims.jsonl --detector papelo --search searxng -o checked.jsonl",
    ],
    "reason": ["spanlab index wiki.jsonl -o wiki.index"],
    "snapshot": PEOPLE,
    "verifier-data": [*PEOPLE, REVIEWED],
    "vote": PEOPLE,
    "export": PEOPLE,
    "annotators": [*PEOPLE, *TEST_RUN],
    "annotators gold": PEOPLE,
    "annotators merge": PEOPLE,
    "annotators rename": PEOPLE,
    "annotators remove": TEST_RUN,
    "diff": KEPT,
    **{f"programs {verb}": TUNED for verb in ("compare", "use")},
    "programs import": [*TUNED[:2], "spanlab programs remove short-spans"],
    "programs remove": TUNED,
    "stages": ["spanlab annotate mine --detector veritrail --detector veritrail-vt-rag --limit 2"],
}


@pytest.fixture(scope="session")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with what the pages name, and the dataset `mine`, annotated and voted on."""
    folder = tmp_path_factory.mktemp("guide")
    for name in ("data", "pages", "contexts", "pred"):
        (folder / name).mkdir()
    for name, step in (("samples", 3), ("questions", 1), ("claims", 1)):
        lines = (ROOT / "data" / f"{name}.jsonl").read_text("utf-8").splitlines(keepends=True)
        (folder / "data" / f"{name}.jsonl").write_text("".join(lines[::step]), "utf-8")
    for copy in ("answers.jsonl", "gold.jsonl", "val.jsonl", "val/en.jsonl"):
        (folder / copy).parent.mkdir(exist_ok=True)
        shutil.copy(folder / "data" / "samples.jsonl", folder / copy)
    for name in ("support.jsonl", "support_reviews.jsonl"):
        shutil.copy(ROOT / "data" / name, folder / "data")
    for copy in ("claims.jsonl", "questions.jsonl"):
        shutil.copy(folder / "data" / copy, folder / copy)
    shutil.copy(ROOT / "data" / "samples.jsonl", folder / "corrected.jsonl")  # enough to learn from
    shutil.copy(SPANS, folder / "spans.json")
    for name, text in {
        "pages/oslo.txt": "Oslo is the capital of Norway.",
        "eiffel.txt": "The Eiffel Tower in Paris was finished in March 1889.",
        "paris.txt": "Paris has 2.1 million inhabitants.",
        "guidelines.md": "# Guidelines\n\nMark what no passage says.",
        "questions.json": next(block for block in blocks("campaigns", "text") if block[0] == "{"),
        "contract.toml": blocks("detector-span-model", "toml")[0],
        "memory.jsonl": "".join(
            f'{{"text": "It has {n} steps.", "entities": ["Eiffel Tower"], "at": {time.time()}}}\n'
            for n in range(14)
        ),
        "contexts/sample-en-1.context.txt": "Oslo is the capital of Norway.",
        "wiki.jsonl": '{"text": "Oslo is the capital of Norway."}\n',
        "outputs.csv": "id,reply\n1,Oslo.\n",
        "answers.csv": "asked,reply\nWhich capital?,Oslo.\n",
        "our-evaluation.toml": blocks("formats", "toml")[0],
        "results.json": '{"results": {"items": [{"output": {"text": "Oslo."}, "verdict": "bad", '
        '"docs": [{"content": "Bern is the capital."}]}]}}',
        "batch_output.jsonl": '{"custom_id": "1", "response": {"body": {"choices": '
        '[{"message": {"role": "assistant", "content": "Oslo."}}]}}}',
        "batch_requests.jsonl": '{"custom_id": "1", "body": {"input": "Which capital?"}}',
        "plan.toml": 'controls = ["everything"]\n[[detector]]\nname = "offline"\n',
    }.items():
        (folder / name).write_text(text, "utf-8")
    people = ",".join(f"synthetic-annotator-{number}" for number in (1, 2, 3))
    for command in (
        "memory import memory.jsonl",
        "import data/samples.jsonl --dataset mine",
        "annotate mine --detector offline",
        f"vote mine --annotators {people}",
    ):
        done = run_here(command.split(), folder, environment(folder))
        assert done.returncode == 0, done.stderr
    return folder


RUNNING = [
    topic for topic in (*TOPICS, *FOR_DEVELOPERS) if blocks(topic, "sh") or blocks(topic, "python")
]


@pytest.fixture
def run_all(
    prepared: Path, tmp_path: Path, model_server: ModelServer, samples: Path, few_trees: None
) -> Callable[[list[str], list[str]], str]:
    """Run commands in their order, then blocks of Python, beside the dataset `mine`.

    Returns what the commands printed.

    Whatever address of an endpoint a command names, the scripted server is there.
    """
    says = GoldAnswers(read(samples), noise=better_when_asked())
    results = [{"title": "Oslo", "content": "So it is."}]
    nothing: dict[str, list[str]] = {"search": [], "pages": []}  # of MediaWiki, which agents ask
    found = ScriptedReply(body={"results": results, "query": nothing, "batchcomplete": True})

    def answer(ask: ModelRequest) -> ScriptedReply:
        if ask.path.startswith("/v1/search"):
            return found
        if ask.body.get("model") == "my-span-model":
            return say('{"errors": []}')
        is_mermaids = "[[ ## known ## ]]" in ask.text or "`[[ ## decomposition ## ]]`" in ask.text
        return (agent(ask) if is_mermaids else None) or says(ask)

    model_server.script(answer)
    folder = shutil.copytree(prepared, tmp_path / "here")
    found_at = f"{model_server.url}/search"
    around = environment(folder) | {
        "SPANLAB_SEARXNG_URL": found_at,
        "SPANLAB_WIKIPEDIA_URL": found_at,  # hosts that are not found are tried again, for a minute
    }

    def run_in_order(lines: list[str], python: list[str]) -> str:
        asked = "\n".join(lines)
        ports = {port: str(free_port()) for port in re.findall(r"--port (\d+)", asked)}
        with ExitStack() as servers:
            variables = around | hub_of(asked, folder, servers) | phoenix_of(asked, servers)
            said = [
                run(command, folder, variables, ports, servers)
                if is_ours(command)
                else check_other(command)
                for command in lines
            ]
            for block in python:
                run_python(block, folder, variables, ports)
        return "\n".join(said)

    return run_in_order


@pytest.mark.parametrize("topic", RUNNING)
def test_every_command_and_python_block_of_a_page_runs_in_the_order_given(
    topic: str, run_all: Callable[[list[str], list[str]], str]
) -> None:
    """A measurement that is shown has something left to review: else nothing is estimated."""
    assert "All reviewed" not in run_all(commands(topic), blocks(topic, "python"))


@pytest.mark.parametrize("command", EXAMPLES)
def test_the_examples_of_a_commands_help_run_in_the_order_given(
    command: str, run_all: Callable[[list[str], list[str]], str]
) -> None:
    run_all([*BEFORE.get(command, ()), *EXAMPLES[command]], [])


def phoenix_of(asked: str, servers: ExitStack) -> dict[str, str]:
    """Start the Phoenix that commands push to, with the traces of ``SPANS``."""
    if PHOENIX not in asked:
        return {}
    homes = servers.enter_context(living())
    homes.spans = json.loads(SPANS.read_text("utf-8"))
    homes.known |= {span["context"]["span_id"] for span in homes.spans}
    return KEYS | {PHOENIX: homes.url}


def hub_of(asked: str, folder: Path, servers: ExitStack) -> dict[str, str]:
    """Start the hub that commands ask, and return the variables that name it."""
    if "encoder fetch" in asked:
        checkpoint = tiny_encoders.write(folder / "tiny", tiny_encoders.copied())
        hub = Hub("ORGANISATION/NAME", checkpoint)
        url = servers.enter_context(fake_hub.serving(hub)).url
    elif "hf://" in asked or " push " in asked:
        url = servers.enter_context(dataset_hub.serving(DatasetHub({}))).url
    else:
        return {}
    return {"HF_ENDPOINT": url, "HF_HOME": str(folder / "hf"), "HF_TOKEN": TOKEN}


NOTHING = re.compile(
    r"macro F1 over labels \.000|\b0 of 0 annotations|none of .* is left to review"
)


def run(
    command: str, folder: Path, around: dict[str, str], ports: dict[str, str], servers: ExitStack
) -> str:
    words = shlex.split(command, comments=True)
    at = words.index("spanlab")
    given = dict(word.split("=", 1) for word in words[:at] if not word.startswith("OPENAI"))
    given.pop("SPANLAB_SEARXNG_URL", None)
    if "SPANLAB_HOME" in given:
        given["SPANLAB_HOME"] = str(folder / given["SPANLAB_HOME"])
    arguments = words[at + 1 :]
    output = arguments.pop() if ">" in arguments else None
    if output is not None:
        arguments.remove(">")
    for before, after in pairwise(arguments):
        if before == "--port":
            arguments[arguments.index(after)] = ports[after]
    for at, word in enumerate(arguments):
        arguments[at] = word.replace(PHOENIX, around.get(PHOENIX, PHOENIX))
        if word in NEWEST:
            listed = run_here([NEWEST[word], "list"], folder, around).stdout
            arguments[at] = re.findall(r"^ *([0-9a-f]{8}\S*)", listed, re.MULTILINE)[0]
    if arguments[0] in SERVERS and "--prepare-only" not in arguments:
        servers.enter_context(serving(arguments, folder, around | given))
        return ""
    if re.search(r"hf://| (push|fetch) ", command):  # the hub's client reads variables once
        done = run_forked(["spanlab", *arguments], around | given, folder)
    else:
        done = run_here(arguments, folder, around | given)
    # Examples of `check` are wrong somewhere, and the scripted model cannot do a detector's task.
    status = {"check": 3, "check-model": 1}.get(arguments[0], 0)
    assert done.returncode == status, f"{command}\n{done.stdout}\n{done.stderr}"
    assert not NOTHING.search(done.stdout), f"says nothing: {command}\n{done.stdout}"
    if output is not None:
        (folder / output).write_text(done.stdout, "utf-8")
    return str(done.stdout)


def check_other(command: str) -> str:
    """Check a command of make, pip or docker, which prints nothing here: what it names is there."""
    program, *words = command.split()
    if program == "make":
        assert re.search(rf"^{words[0]}:", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
    else:
        assert (program, words[:2]) == ("docker", ["compose", "up"])
        assert (ROOT / "compose.yaml").is_file()
    return ""


def run_python(block: str, folder: Path, around: dict[str, str], ports: dict[str, str]) -> None:
    for port, other in ports.items():
        block = block.replace(port, other)
    script = folder / "block.py"
    script.write_text(block, "utf-8")
    act = partial(runpy.run_path, str(script), run_name="__main__")
    done = run_forked([str(script)], around, folder, act)
    assert done.returncode == 0, f"{block}\n{done.stderr}"


def test_where_there_is_a_display_the_command_opens_a_page_with_its_pictures(
    tmp_path: Path,
) -> None:
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\necho "$1" > {tmp_path}/opened\n', "utf-8")
    browser.chmod(0o755)
    ours, terminal = pty.openpty()
    command = [sys.executable, "-m", "spanlab", "guide", "review"]
    around = environment(tmp_path) | {"DISPLAY": ":0", "BROWSER": f"{browser} %s"}
    subprocess.run(command, env=around, stdout=terminal, timeout=120, check=True)
    assert os.read(ours, 1000).startswith(b"file://")
    page = Path(unquote(urlsplit((tmp_path / "opened").read_text("utf-8").strip()).path))
    html = page.read_text("utf-8")
    assert "<code>Ctrl+z</code>" in page.with_name("keys.html").read_text("utf-8")
    for link in re.findall(r'href="([\w-]+\.html)', html):
        assert page.with_name(link).is_file()
    for picture in re.findall(r'src="file://([^"]+)"', html):
        assert Path(unquote(picture)).is_file()


def test_the_static_site_has_every_page_and_asks_no_other_host(tmp_path: Path) -> None:
    """As `make guide` builds it: strict, so that a link that leads nowhere fails."""
    mkdocs = Path(sys.executable).with_name("mkdocs")
    config = ROOT / "tests" / "site" / "mkdocs.yml"
    options = ["--quiet", "--config-file", str(config), "--site-dir", str(tmp_path / "site")]
    done = subprocess.run(
        [str(mkdocs), "build", *options],
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    html = (tmp_path / "site" / "detectors.html").read_text("utf-8")
    assert {page.stem for page in (tmp_path / "site").glob("*.html")} > set(TOPICS)
    assert re.findall(r'(?:<script[^>]* src|<link[^>]* href)="?(https?:[^" >]+)', html) == []
