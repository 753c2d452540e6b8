"""What a pipeline's exporter sends is there to review, without anybody importing it."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from commands import serving
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
    server: Server, store: Store, page: Page, tmp_path: Path
) -> None:
    port = str(free_port())
    environment = {
        **os.environ,
        "SPANLAB_HOME": str(server.settings.home),
        "SPANLAB_DATABASE_URL": server.settings.database_url,
        "SPANLAB_API_KEY": KEY,
    }
    command = ["api", "--detector", "offline", "--port", port, "--traces", "test-traced"]
    with serving(command, tmp_path, environment):
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
    Desk(server, store, page, "test-traced").visit()
    expect(page.get_by_text(ANSWER).first).to_be_visible()
    expect(page.get_by_text("Who built the tower?").first).to_be_visible()


def said(role: str, text: str) -> str:
    return json.dumps([{"role": role, "parts": [{"type": "text", "content": text}]}])
