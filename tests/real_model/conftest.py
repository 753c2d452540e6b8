"""A real model: an endpoint that is there, or a file of weights that llama.cpp's server serves."""

from __future__ import annotations

import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from spanlab.base.settings import Settings
from spanlab.models import ModelChoice

SERVER = Path(__file__).resolve().parents[2] / ".venv" / "model" / "bin" / "python"
_PATIENCE = 120.0  # seconds in which a server has loaded its weights


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that names the model."""
    parser.addoption("--model", required=True, help="an address of OpenAI's protocol, or a .gguf")


@pytest.fixture(scope="session")
def address(request: pytest.FixtureRequest) -> Iterator[str]:
    """The address of the model's endpoint."""
    named = str(request.config.getoption("--model"))
    if named.startswith("http"):
        yield named.rstrip("/")
        return
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    served = ["--model", named, "--port", port, "--n_ctx", "8192"]
    server = subprocess.Popen([str(SERVER), "-m", "llama_cpp.server", *served])
    try:
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        server.terminate()
        server.wait()


@pytest.fixture(scope="session")
def model(address: str) -> ModelChoice:
    """The first model of the endpoint, once it answers; its replies are bounded."""
    until = time.monotonic() + _PATIENCE
    while True:
        try:
            models = httpx.get(f"{address}/models").raise_for_status().json()
            break
        except httpx.HTTPError:
            if time.monotonic() > until:
                raise
            time.sleep(0.5)
    name = models["data"][0]["id"]
    return ModelChoice(model=name, base_url=address, timeout=1800.0, max_tokens=600)


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """A home of its own: what was found of the endpoint before is not known there."""
    return Settings(home=tmp_path, database_url=f"sqlite:///{tmp_path / 'spanlab.db'}")
