"""The project's own promises: what is locked, what is public, what is kept out."""

from __future__ import annotations

import ast
import json
import re
import shutil
import subprocess
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import ClassVar

import pytest
import yaml

import spanlab

ROOT = Path(__file__).resolve().parents[2]
ONLY_CODE = shutil.ignore_patterns("__pycache__", "*.webp", "*.md", "model.*")


@pytest.mark.parametrize("name", ["requirements.lock", "tests/requirements.lock"])
def test_a_lock_pins_every_package_with_hashes_and_names_no_address(name: str) -> None:
    lock = (ROOT / name).read_text(encoding="utf-8")
    packages = re.findall(r"^[a-z0-9].*$", lock, re.MULTILINE)
    assert len(packages) > 50
    for package in packages:
        assert re.match(r"^[a-z0-9._-]+==\S+( ; .+)? \\$", package), package
    assert len(re.findall(r"--hash=sha256:[0-9a-f]{64}", lock)) >= len(packages)
    assert "://" not in lock
    assert "--index" not in lock


VULNERABLE = {"id": "OSV-1", "summary": "Reads too far.", "affected": [], "schema_version": "1.0.0"}


class Advisories(BaseHTTPRequestHandler):
    """A service that knows a vulnerability of one package."""

    package: ClassVar = ""

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        known = asked["package"]["name"] == self.package
        body = json.dumps({"vulns": [VULNERABLE]} if known else {}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def audited(url: str) -> tuple[int, str]:
    """Return the exit status and the words of `make check`'s audit with a service at ``url``."""
    command = ["sh", "tests/audit.sh", str(Path(sys.executable).with_name("pip-audit"))]
    done = subprocess.run(
        [*command, "--osv-url", url], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout


def test_a_known_vulnerability_of_what_is_locked_fails_the_check_and_no_network_does_not() -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), Advisories) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}/"
        assert audited(url) == (0, "what is locked has no known vulnerability\n")
        Advisories.package = "sqlalchemy"
        status, words = audited(url)
        assert status == 1
        assert re.search(r"sqlalchemy +\S+ +OSV-1", words)
        server.shutdown()
    status, words = audited(url)
    assert (status, words.partition(":")[0]) == (0, "not run")


def test_nothing_that_the_app_is_installed_with_runs_neural_networks() -> None:
    """Users ask for a light install; tests alone have what the extra `encoder` names.

    Not even tests have torch, unless somebody asks: `make test-torch`.
    """
    lock = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    packages = set(re.findall(r"^([a-z0-9._-]+)==", lock, re.MULTILINE))
    heavy = ("torch", "transformers", "tensorflow", "jax", "onnxruntime", "nvidia", "triton")
    assert not [package for package in packages if package.startswith(heavy)]
    assert "\ntorch==" not in (ROOT / "tests/requirements.lock").read_text(encoding="utf-8")


def test_every_public_name_exists_and_explains_itself() -> None:
    assert spanlab.__all__ == sorted(spanlab.__all__)
    for name in spanlab.__all__:
        assert len(getattr(spanlab, name).__doc__ or "") > 80


def test_an_unknown_public_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="nonsense"):
        _ = spanlab.nonsense


def test_unsafe_calls_that_no_linter_knows_are_not_made() -> None:
    """HTML that Streamlit lets through, and streams that are read as far as their sender wants."""
    for path in (ROOT / "app.py", *ROOT.glob("spanlab/**/*.py"), *ROOT.glob("optimizers/**/*.py")):
        assert unsafe_calls(path.read_text(encoding="utf-8")) == [], path


def test_no_pattern_repeats_a_group_possessively() -> None:
    """Python 3.11.0 to 3.11.4 match more than such a pattern says (python/cpython#106052)."""
    possessive = re.compile(r"\)(?:[*+?]|\{[^{}]*\})\+")
    for path in (*ROOT.glob("spanlab/**/*.py"), *ROOT.glob("optimizers/**/*.py")):
        assert not possessive.findall(path.read_text(encoding="utf-8")), path


@pytest.mark.parametrize(
    "call", ["st.markdown(text, unsafe_allow_html=True)", "reply.read()", "await reply.aread()"]
)
def test_an_unsafe_call_is_found(call: str) -> None:
    assert unsafe_calls(f"{call}\n") == [1]
    assert (
        unsafe_calls("Settings.read(); reply.read(1000)\nfile.read()  # bounded: by its size") == []
    )


def unsafe_calls(source: str) -> list[int]:
    """Return the lines of such calls; a comment "bounded: why" says that a stream is no danger."""
    bounded = {n for n, line in enumerate(source.splitlines(), 1) if "# bounded: " in line}
    calls = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    let_through = {
        call.lineno for call in calls if "unsafe_allow_html" in {word.arg for word in call.keywords}
    }
    streams = re.compile(r"(^|\W)[a-z_]\w*\.a?read\(\)$")  # Settings.read() is no stream
    read = {call.lineno for call in calls if streams.search(ast.unparse(call))}
    return sorted(let_through | read - bounded)


def test_unsafe_code_does_not_pass_the_linter() -> None:
    code = (
        "import pickle\nimport subprocess\nimport urllib.request\n\n"
        "pickle.loads(b'')\neval('')\nsubprocess.run('', shell=True)\n"
        "urllib.request.urlopen('')\n"
    )
    ruff = str(Path(sys.executable).with_name("ruff"))
    done = subprocess.run(
        [ruff, "check", "--output-format=concise", "--stdin-filename", "spanlab/new.py", "-"],
        cwd=ROOT,
        input=code,
        capture_output=True,
        text=True,
        check=False,
    )
    found = set(re.findall(r"new.py:(\d+):\d+: ([A-Z]+\d+)", done.stdout))
    assert found >= {("1", "TID251"), ("5", "S301"), ("6", "S307"), ("7", "S602"), ("8", "TID251")}


def test_nothing_of_this_machine_is_committed() -> None:
    """No key, no machine path."""
    pattern = r"(^|[^A-Za-z0-9_.])/(work|home|root)/[a-z]|sk-[A-Za-z0-9]{20,}"
    found = subprocess.run(
        ["git", "grep", "-nIE", pattern, "--", ":!tests/lint/test_project.py"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.stdout == ""


def test_every_promise_about_security_names_files_and_tests_that_are_there() -> None:
    page = (ROOT / "spanlab" / "developers" / "security.md").read_text("utf-8")
    _, _, promised = page.partition("## What is not trusted")
    promised, _, _ = promised.partition("## Limits of the protection")
    for promise in re.split(r"^- (?=\*\*)", promised, flags=re.MULTILINE)[1:]:
        files, _, kept = promise.partition("Kept by")
        named = re.findall(r"`([\w./]+?(?:\.py|\.js|\.toml|/))`", files.partition("Files: ")[2])
        tests = re.findall(r"`(tests/[\w/]+\.py)::(test_\w+)`", kept)
        assert named, promise
        assert tests, promise
        for file in named:
            assert (ROOT / "spanlab" / file).exists() or (ROOT / file).exists(), file
        for file, test in tests:
            if re.match(r"tests/(full/)?systems/", file) and not (ROOT / file).parent.is_dir():
                continue  # of a system that was taken out
            assert f"def {test}(" in (ROOT / file).read_text("utf-8"), test


def test_compose_passes_on_every_variable_that_the_guide_tells_a_team_to_set() -> None:
    """Without SPANLAB_INVITE and the provider's the containers would serve without a login."""
    services = yaml.safe_load((ROOT / "compose.yaml").read_text(encoding="utf-8"))["services"]
    guide = (ROOT / "spanlab" / "guide" / "team.md").read_text(encoding="utf-8")
    named = set(re.findall(r"\b(?:SPANLAB|OPENAI)_[A-Z_]*[A-Z]\b", guide))
    for name in ("app", "worker"):
        passed = {each.removesuffix("_FILE") for each in services[name]["environment"]}
        assert {each.removesuffix("_FILE") for each in named} - passed == {"SPANLAB_HOME"}
    image = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    assert "ENV SPANLAB_HOME=/data" in image


@pytest.mark.parametrize(
    ("module", "code", "says"),
    [
        pytest.param("attic/__init__.py", "import spanlab.app\n", "spanlab.attic", id="room"),
        pytest.param("attic.py", "import spanlab.app\n", "spanlab.attic", id="module"),
        pytest.param(
            "text/attic.py",
            "import spanlab.schema\nimport spanlab.app\n",
            "spanlab.text is not allowed to import spanlab.app",
            id="upwards",
        ),
    ],
)
def test_a_new_room_is_refused_until_it_has_its_layer(
    module: str, code: str, says: str, tmp_path: Path
) -> None:
    for name in ("spanlab", "optimizers"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=ONLY_CODE)
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    new = tmp_path / "spanlab" / module
    new.parent.mkdir(exist_ok=True)
    new.write_text(code, encoding="utf-8")
    lint = [str(Path(sys.executable).with_name("lint-imports")), "--contract", "rooms"]
    found = subprocess.run(
        [*lint, "--no-cache"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert found.returncode == 1
    assert says in found.stdout


def test_every_room_has_tests_in_the_fast_tier() -> None:
    """But those of texts alone: what is said there is looked at by tests/lint."""
    rooms = {path.parent.name for path in (ROOT / "spanlab").glob("*/__init__.py")}
    tested = {
        path.relative_to(ROOT / "tests").parts[0] for path in ROOT.glob("tests/*/**/test_*.py")
    }
    assert rooms - tested == set()
