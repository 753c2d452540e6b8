"""What a pipeline's exporter sends is there to review, without anybody importing it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest
from driving import Desk
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from playwright.sync_api import Page, expect
from ports import free_port
from serving import Server

from spanlab.storage import Store

pytestmark = pytest.mark.browser

KEY = "a-key-that-is-long-enough"
ANSWER = "The tower was built in 1989 by Ada Smith."


def test_an_answer_of_a_pipeline_appears_in_review(
    server: Server, store: Store, page: Page
) -> None:
    port = free_port()
    environment = {
        **os.environ,
        "SPANLAB_HOME": str(server.settings.home),
        "SPANLAB_DATABASE_URL": server.settings.database_url,
        "SPANLAB_API_KEY": KEY,
    }
    command = [str(Path(sys.executable).with_name("spanlab")), "api", "--detector", "offline"]
    api = subprocess.Popen(
        [*command, "--port", str(port), "--traces", "test-traced"], env=environment
    )
    try:
        is_up(port)
        exporter = OTLPSpanExporter(
            f"http://127.0.0.1:{port}/v1/traces", headers={"Authorization": f"Bearer {KEY}"}
        )
        provider = TracerProvider()
        provider.add_span_processor(SimpleSpanProcessor(exporter))
        with provider.get_tracer("p").start_as_current_span("chat m") as span:
            span.set_attribute("gen_ai.operation.name", "chat")
            span.set_attribute("gen_ai.input.messages", said("user", "Who built the tower?"))
            span.set_attribute("gen_ai.output.messages", said("assistant", ANSWER))
        provider.shutdown()
    finally:
        api.terminate()
        api.wait()
    Desk(server, store, page, "test-traced").visit()
    expect(page.get_by_text(ANSWER).first).to_be_visible()
    expect(page.get_by_text("Who built the tower?").first).to_be_visible()


def is_up(port: int) -> None:
    until = time.monotonic() + 120
    while True:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz", timeout=5):
                return
        except OSError:
            assert time.monotonic() < until
            time.sleep(0.1)


def said(role: str, text: str) -> str:
    return json.dumps([{"role": role, "parts": [{"type": "text", "content": text}]}])
