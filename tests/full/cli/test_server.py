"""`spanlab demo` and `spanlab serve` as somebody starts and stops them."""

from __future__ import annotations

import http.client
import json
import logging
import os
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from commands import run_here, serving
from ports import free_port
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ClientState_pb2 import ClientState
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets.sync.client import connect
from websockets.typing import Origin, Subprotocol

from spanlab.app.guard import guards
from spanlab.base.redaction import remember
from spanlab.base.settings import Settings
from spanlab.schema import Item, Record
from spanlab.storage import Store

ROOT = Path(__file__).resolve().parents[3]
READY = "spanlab is at "


class Server:
    """A running command, its lines on standard error so far, and its address once it has one."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.lines: list[str] = []
        self._ready = threading.Event()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    @property
    def address(self) -> str:
        assert self._ready.wait(300), self.lines
        line = next((line for line in self.lines if line.startswith(READY)), None)
        assert line is not None, self.lines
        return line.removeprefix(READY).split()[0]

    def stop(self) -> int:
        self.process.send_signal(signal.SIGINT)
        status = self.process.wait(120)
        self._reader.join(60)
        return status

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.lines.append(line.rstrip("\n"))
            if line.startswith(READY):
                self._ready.set()
        self._ready.set()  # it ended: nobody shall wait for more


@contextmanager
def running(command: list[str], home: Path, cwd: Path = ROOT) -> Iterator[Server]:
    environment = {
        name: value
        for name, value in os.environ.items()
        if "SPANLAB" not in name and "MAKE" not in name and name != "ARGS"
    }  # what `make test` is given is not for a `make run` in it
    process = subprocess.Popen(
        command,
        cwd=cwd,
        env=environment | {"SPANLAB_HOME": str(home)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    with process:
        try:
            yield Server(process)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)


def spanlab(*arguments: str) -> list[str]:
    return [str(Path(sys.executable).with_name("spanlab")), *arguments]


def test_make_run_and_demo_serve_the_samples_and_keep_them(tmp_path: Path) -> None:
    with running(["make", "run"], tmp_path) as server:
        with urllib.request.urlopen(server.address, timeout=60) as page:
            assert page.status == 200
        assert any("dataset 'samples' is ready: 67 items" in line for line in server.lines)

    (tmp_path / "spanlab").mkdir()  # as a clone of spanlab is in the folder above it
    (tmp_path / "spanlab/__init__.py").write_text("raise ImportError('another folder')")
    with running(spanlab("demo"), tmp_path, cwd=tmp_path) as server:
        assert server.address.startswith("http://localhost:")
        assert not any("is ready" in line for line in server.lines)
        assert server.stop() == 0
        assert server.lines[-1] == "stopped"
        assert not any("Traceback" in line for line in server.lines)


@pytest.mark.parametrize("starter", ["serve", "streamlit"])
def test_only_its_own_names_and_pages_are_answered(starter: str, tmp_path: Path) -> None:
    """A page of another site reaches this machine through a name of its own (DNS rebinding)."""
    port = free_port()
    # Tells of every other host that the server, or a process that it starts, looks for.
    (tmp_path / "sitecustomize.py").write_text(LOOKS_FOR_OTHER_HOSTS)
    environment = os.environ | {
        "SPANLAB_HOME": str(tmp_path / "home"),
        "SPANLAB_ALLOWED_HOSTS": "review.example.org",
        "PYTHONPATH": str(tmp_path),
        "ASKED": str(tmp_path / "asked"),
    }
    command = spanlab("serve", "--port", str(port)) if starter == "serve" else streamlit_run(port)
    with answering(command, port, environment) as process:
        answered = {
            (host, origin): (status(port, host, origin), opens(port, host, origin))
            for host, origin in EXPECTED
        }
        replies = {
            path: headers_of(port, path) for path in ("/", "/healthz", "/_stcore/host-config")
        }
        replies["metrics"] = headers_of(port, "/_stcore/metrics")
        told = list(messages(port))
    assert answered == EXPECTED
    assert replies["metrics"]["status"] == "401"
    for headers in replies.values():  # the health check and a refusal, too
        assert headers["content-security-policy"] == "frame-ancestors 'self'"
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "same-origin"
    assert json.loads(replies["/_stcore/host-config"]["body"])["allowedOrigins"] == []
    assert starter == "streamlit" or process.returncode == 0, "the status after SIGTERM"
    (began,) = [each.new_session for each in told if each.WhichOneof("type") == "new_session"]
    assert not began.config.gather_usage_stats
    assert any(each.WhichOneof("type") == "navigation" for each in told)
    assert not (tmp_path / "asked").exists()


def test_the_first_lead_gets_a_link_that_leads_there(tmp_path: Path) -> None:
    """Also where nobody said at which address people reach the app."""
    port = free_port()
    environment = os.environ | {"SPANLAB_HOME": str(tmp_path), "SPANLAB_URL": ""}
    command = spanlab("serve", "--port", str(port), "--invite")
    pipe = subprocess.PIPE
    with subprocess.Popen(command, env=environment, stderr=pipe, text=True) as server:
        late = threading.Timer(60, server.kill)
        late.start()
        try:
            assert server.stderr is not None
            told = next((line for line in server.stderr if "open this link once" in line), "")
            assert f"once: http://localhost:{port}/invitation?to=sl-" in told
            path = told.partition(str(port))[2].strip()
            assert "You are invited" in headers_of(port, path)["body"]
        finally:
            late.cancel()
            server.terminate()


def test_a_link_shows_the_report_without_a_login_until_it_is_revoked(
    tmp_path: Path,
) -> None:
    settings = Settings(home=tmp_path, database_url=f"sqlite:///{tmp_path}/spanlab.db")
    record = Record(item=Item(id="a", answer="It opened in 1887."))
    with Store.open(settings) as store:
        store.import_records("d", [record])
    port = free_port()
    environment = os.environ | {
        "SPANLAB_HOME": str(tmp_path),
        "SPANLAB_INVITE": "yes",
        "SPANLAB_URL": f"http://127.0.0.1:{port}/",
    }

    def run(*arguments: str) -> str:
        done = run_here([*arguments], tmp_path, environment)
        assert done.returncode == 0, done.stderr
        return done.stdout

    with serving(["serve", "--port", str(port)], tmp_path, environment):
        link = run("reports", "create", "d", "--days", "2").strip()
        assert link.startswith(f"http://127.0.0.1:{port}/report?to=sl-")
        path = link.partition(str(port))[2]
        page = headers_of(port, path)
        assert page["status"] == "200"
        assert "1887" in page["body"]
        assert "default-src 'none'" in page["content-security-policy"]
        assert "frame-ancestors 'none'" in page["content-security-policy"]
        assert "script" not in page["content-security-policy"]
        assert page["referrer-policy"] == "no-referrer"
        assert page["x-robots-tag"].startswith("noindex")
        assert page["cache-control"] == "no-store"
        assert page["x-content-type-options"] == "nosniff"
        assert "set-cookie" not in page
        with Store.open(settings) as store:
            store.import_records("d", [Record(item=Item(id="b", answer="What came later."))])
        assert headers_of(port, path)["body"] == page["body"]  # as it was
        (listed,) = (line for line in run("reports", "list").splitlines() if " d " in line)
        assert link.partition("to=")[2] not in listed
        run("reports", "revoke", listed.split()[0])
        for gone in (path, "/report?to=sl-guess", "/report", f"/report?to={'x' * 5000}"):
            refused = headers_of(port, gone)
            assert refused["status"] == "404"
            assert "no longer valid" in refused["body"]
            assert refused["referrer-policy"] == "no-referrer"
    assert "report made" in run("log")
    stored = sqlite3.connect(tmp_path / "spanlab.db").execute("SELECT * FROM access_tokens")
    assert link.partition("to=")[2] not in str(stored.fetchall())


def test_the_pages_are_not_shown_by_a_server_that_nothing_guards(tmp_path: Path) -> None:
    port = free_port()
    command = streamlit_run(port, script="spanlab/app/navigation.py")
    with answering(command, port, os.environ | {"SPANLAB_HOME": str(tmp_path)}):
        told = list(messages(port))
    assert any("start the app with `spanlab serve`" in str(each) for each in told)
    assert not any(each.WhichOneof("type") == "navigation" for each in told)


HERE = "127.0.0.1"
EXPECTED = {
    (HERE, None): (200, True),
    (HERE, f"http://{HERE}"): (200, True),
    ("localhost", "http://localhost"): (200, True),
    ("review.example.org", "https://review.example.org"): (200, True),
    (HERE, "https://review.example.org"): (200, True),
    ("rebound.example.com", "http://rebound.example.com"): (421, False),
    ("review.example.org.example.com", None): (421, False),
    ("", None): (421, False),
    (HERE, "https://example.com"): (403, False),
    (HERE, "http://localhost:3000"): (403, False),
    (HERE, "null"): (403, False),
}
LOOKS_FOR_OTHER_HOSTS = """
import os, sys

def told(event, args):
    if event == "socket.getaddrinfo" and args[0] not in (None, "", "localhost", "127.0.0.1"):
        open(os.environ["ASKED"], "a").write(f"{args[0]}\\n")
    if event == "socket.connect" and isinstance(args[1], tuple) and args[1][0] != "127.0.0.1":
        open(os.environ["ASKED"], "a").write(f"{args[1]}\\n")

sys.addaudithook(told)
"""


def streamlit_run(port: int, *options: str, script: str = "app.py") -> list[str]:
    return [sys.executable, "-m", "streamlit", "run", script, f"--server.port={port}", *options]


@contextmanager
def answering(
    command: list[str], port: int, environment: dict[str, str]
) -> Iterator[subprocess.Popen[bytes]]:
    """Start a server and wait until it answers."""
    nowhere = subprocess.DEVNULL
    with subprocess.Popen(
        command, cwd=ROOT, env=environment, stdout=nowhere, stderr=nowhere
    ) as process:
        try:
            for _ in range(600):
                assert process.poll() is None
                with suppress(OSError):
                    assert status(port, HERE, None) == 200
                    break
                time.sleep(0.2)
            yield process
        finally:
            process.terminate()


def status(port: int, host: str, origin: str | None) -> int:
    """Ask for the page over HTTP."""
    connection = http.client.HTTPConnection(HERE, port, timeout=60)
    headers = {"Host": f"{host}:{port}"} | own(origin, port)
    connection.request("GET", "/", headers=headers)
    answer = connection.getresponse().status
    connection.close()
    return answer


def headers_of(port: int, path: str) -> dict[str, str]:
    """Return the headers of a reply, and its body and status."""
    connection = http.client.HTTPConnection(HERE, port, timeout=60)
    connection.request("GET", path, headers={"Host": f"{HERE}:{port}"})
    reply = connection.getresponse()
    told = {**dict(reply.getheaders()), "body": reply.read().decode(), "status": str(reply.status)}
    connection.close()
    return {name.lower(): value for name, value in told.items()}


def opens(port: int, host: str, origin: str | None) -> bool:
    """Ask for the web socket that drives the app."""
    headers = {"Host": f"{host}:{port}"}
    request = (
        "GET /_stcore/stream HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
        "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==\r\n"
    )
    lines = [f"{name}: {value}\r\n" for name, value in (headers | own(origin, port)).items()]
    with socket.create_connection((HERE, port), timeout=60) as connection:
        connection.sendall((request + "".join(lines) + "\r\n").encode())
        return connection.recv(12) == b"HTTP/1.1 101"


def own(origin: str | None, port: int) -> dict[str, str]:
    """Return the header of a page; a page of the server's own has its port."""
    local = origin in {f"http://{HERE}", "http://localhost"}
    return {} if origin is None else {"Origin": f"{origin}:{port}" if local else origin}


def messages(port: int) -> Iterator[ForwardMsg]:
    """Open the app as a browser does, and yield what the server says until a page is drawn."""
    address = f"ws://{HERE}:{port}/_stcore/stream"
    origin = Origin(f"http://{HERE}:{port}")
    with connect(address, origin=origin, subprotocols=[Subprotocol("streamlit")]) as socket:
        socket.send(BackMsg(rerun_script=ClientState()).SerializeToString())
        for message in socket:
            assert isinstance(message, bytes)
            told = ForwardMsg.FromString(message)
            yield told
            if told.WhichOneof("type") == "script_finished":
                return


def test_streamlit_run_does_not_listen_for_other_machines_unasked(tmp_path: Path) -> None:
    done = subprocess.run(
        streamlit_run(0, "--server.address=0.0.0.0"),
        cwd=ROOT,
        env=os.environ | {"SPANLAB_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 1
    assert "Start it with `spanlab serve`" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_taken_port_is_said_and_without_a_chosen_one_the_next_one_is_used(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        done = subprocess.run(
            spanlab("serve", "--port", str(port)),
            env=os.environ | {"SPANLAB_HOME": str(tmp_path)},
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )
    assert done.returncode == 1
    assert f"port {port} is in use" in done.stderr


@pytest.mark.parametrize("target", ["run", "test", "check", "bench"])
def test_make_has_every_command_that_the_readme_names(target: str) -> None:
    done = subprocess.run(
        ["make", "--dry-run", target], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_what_libraries_log_in_the_app_has_no_key(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(logging, "_logRecordFactory", logging.LogRecord)
    remember("sk-a-key-in-the-app")
    guards()
    for _ in range(300):
        logging.getLogger("streamlit.web").error("GET /?key=sk-a-key-in-the-app")
    assert "GET /?key=[key]" in caplog.text
    assert "sk-a-key" not in caplog.text
    assert len(caplog.records) <= 200, "of two minutes, should one end meanwhile"


def test_what_breaks_a_page_is_in_the_log_as_json(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sitecustomize.py").write_text(
        "import streamlit, threading\n"
        "def navigation(*args, **changes):\n"
        "    threading.Thread(target=lambda: 1 / 0, name='odd').start()\n"
        "    raise RuntimeError('an odd page')\n"
        "streamlit.navigation = navigation\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    port = free_port()
    with running(spanlab("serve", "--port", str(port), "--log-json"), tmp_path) as server:
        for _ in range(600):
            with suppress(OSError):
                assert status(port, HERE, None) == 200
                break
            time.sleep(0.2)
        list(messages(port))
        server.stop()
    told = [json.loads(line) for line in server.lines]
    assert told[0]["message"].startswith(READY)
    assert any("an odd page" in str(each) for each in told), told
    assert any("odd has ended by an error" in each["message"] for each in told), told
