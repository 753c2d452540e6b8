"""`spanlab serve`, `demo`, `mcp` and `api`: the app, and answers for other programs."""

from __future__ import annotations

import os
import socket
import sys
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from spanlab.base.errors import InputError, UsageError, missing_package
from spanlab.base.settings import Settings
from spanlab.cli import console
from spanlab.cli.inputs import LogJson, OptionsWithout, takes_options
from spanlab.detection.selection import DetectorSelection
from spanlab.schema import Permission


def serve(
    port: Annotated[
        int | None, typer.Option(min=1, max=65535, help="Default 8501, or the next free one.")
    ] = None,
    host: Annotated[
        str,
        typer.Option(help="The address to listen on; other machines need SPANLAB_ALLOWED_HOSTS."),
    ] = "127.0.0.1",
    invite: Annotated[
        bool,
        typer.Option(
            "--invite",
            help="People come by invitation links, without a login provider; prints yours.",
        ),
    ] = False,
    log_json: LogJson = False,
) -> None:
    """Serve the app on this machine until Ctrl+C.

    /healthz answers while it runs, /readyz while its database answers, too. With --invite nobody
    gets in without an invitation: open the link that the command prints, and invite others on the
    page Campaign. SPANLAB_URL is the address where they reach the app.

    \b
    spanlab serve
    spanlab serve --port 8600
    spanlab serve --invite
    """
    if invite:
        os.environ["SPANLAB_INVITE"] = "yes"
    become_server(port, host, log_json=log_json)


def demo(
    port: Annotated[
        int | None, typer.Option(min=1, max=65535, help="Default 8501, or the next free one.")
    ] = None,
    prepare_only: Annotated[
        bool, typer.Option("--prepare-only", help="Make the dataset without serving the app.")
    ] = False,
) -> None:
    """Import the samples once, let the offline detector and a vote mark them, and serve the app.

    If it is run again, it keeps all work and only serves the app.

    \b
    spanlab demo
    spanlab demo --prepare-only
    """
    from spanlab.data.importing import (
        DATASET,
        detection_of_samples,
        prepare_samples,
        prepare_tour,
    )
    from spanlab.detection.run import unfinished_positions
    from spanlab.storage import Store

    request = detection_of_samples()
    with Store.open() as store, console.bar("preparing", unit="items") as advance:
        prepare_samples(store, on_progress=advance)
        n_left = len(unfinished_positions(store, request))
    if n_left:
        from spanlab.detection.working import detect
        from spanlab.jobs.working import sum_up

        sum_up(detect(request, n_left))
        with Store.open() as store:
            prepare_tour(store)
        console.say(f"dataset {DATASET!r} is ready: {n_left} items")
    if not prepare_only:
        become_server(port)


_HOST = "127.0.0.1"


def become_server(
    port: int | None = None, host: str = _HOST, *, log_json: bool = False
) -> NoReturn:
    """Serve the app on ``port`` (None: 8501 or the next free one) until it is stopped.

    This process becomes the server: none is left behind that somebody has to stop.

    Raises:
        InputError: the wanted port is taken.
        UsageError: a setting is wrong, or other machines would reach it, and nobody said under
            which names.
    """
    from spanlab.people.logins import has_provider
    from spanlab.ui.server_files import LOOPBACK, allowed_hosts

    has_provider()  # or says what its settings lack
    if host not in LOOPBACK and allowed_hosts() == LOOPBACK:
        raise UsageError(
            f"the app would listen on {host}: SPANLAB_ALLOWED_HOSTS names the hosts that it "
            "answers as to other machines"
        )
    if port is not None and not _is_free(port, host):
        raise InputError(
            f"port {port} is in use", expected="a free port, or none for spanlab to choose"
        )
    os.execv(sys.executable, server_command(port, host, log_json=log_json))  # noqa: S606 - no shell is wanted


def server_command(port: int | None, host: str = _HOST, *, log_json: bool = False) -> list[str]:
    """Return the command that serves the app at an address, this machine's own by default."""
    arguments = [host, str(port or ""), "json" if log_json else ""]
    return [sys.executable, "-P", "-m", "spanlab.app.guard", *arguments]


def _is_free(port: int, host: str) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError:
            return False
        return True


Selection = Annotated[DetectorSelection, OptionsWithout("detector", "corpus")]

Detectors = Annotated[
    list[str] | None,
    typer.Option("--detector", help="A detector to offer; the first is the default. Repeatable."),
]
Corpus = Annotated[
    Path | None,
    typer.Option(
        help="An index whose passages are offered; detectors search it with --search bm25."
    ),
]


@takes_options
def mcp(
    selection: Selection,
    detector: Detectors = None,
    source: Annotated[
        list[str] | None,
        typer.Option(
            help="A source whose tools are offered: wikipedia, search or papers. Repeatable."
        ),
    ] = None,
    corpus: Corpus = None,
    port: Annotated[
        int | None,
        typer.Option(min=1, max=65535, help="Serve streamable HTTP at this port instead of stdio."),
    ] = None,
    host: Annotated[
        str, typer.Option(help="The address to listen on; other machines need SPANLAB_API_KEY.")
    ] = "127.0.0.1",
) -> None:
    """Offer detectors, claim verification, scores and sources of evidence as an MCP server.

    At a port, requests carry the key that SPANLAB_API_KEY holds, or one of a lead that
    `spanlab keys` made, if there is any.

    \b
    spanlab mcp  # for an assistant that starts it
    spanlab mcp --detector ucsc-extract --port 9000  # at http://127.0.0.1:9000/mcp
    spanlab mcp --detector papelo --search brave --model gpt-4o-mini --option n=3
    spanlab mcp --source wikipedia --source papers  # these sources alone, without a detector
    """
    from spanlab.integrations.offers import ServiceOffers
    from spanlab.storage import Store

    try:
        from spanlab.integrations.gate import Gate, JsonBodies, RoleCheck, check_key, serve
        from spanlab.integrations.mcp_server import mcp_server, serve_stdio
    except ModuleNotFoundError as error:
        raise missing_package("an MCP server", error.name, "mcp") from None
    sources = dict.fromkeys([*(source or ()), *(["corpus"] if corpus else ())])
    offered = detector or ([] if source else ["offline"])
    offers = ServiceOffers(_select_offered(selection, offered, corpus)) if offered else None
    server = mcp_server(offers, tuple(sources), Settings.read(), corpus)
    if port is None:
        serve_stdio(server)
        return
    key = Settings.read().api_key
    with Store.open() as store:
        has_keys = bool(store.access.tokens("key"))
        check_key(key, host, has_other_keys=has_keys)
        # What tools do costs the server's money: keys need the role of a lead.
        app = RoleCheck(
            JsonBodies(server.streamable_http_app(host=host)),
            needed=lambda _method, _path: Permission.ADMINISTER,
        )
        gate = Gate(app, key, bearer=store.access.bearer if key or has_keys else None)
        typer.echo(f"MCP server at http://{host}:{port}/mcp  (Ctrl+C stops it)", err=True)
        serve(gate, host, port)


@takes_options
def api(
    selection: Selection,
    detector: Detectors = None,
    corpus: Corpus = None,
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=1, max=65535)] = 8600,
    rate: Annotated[int, typer.Option(min=1, help="Maximum requests per minute.")] = 600,
    traces: Annotated[
        str | None,
        typer.Option(
            help="The dataset that gets traces sent to /v1/traces (OpenTelemetry's OTLP)."
        ),
    ] = None,
    settle: Annotated[
        float,
        typer.Option(min=0, help="Seconds without a new span after which a trace is stored."),
    ] = 10,
    log_json: LogJson = False,
) -> None:
    """Offer detectors, claim verification and scores as a JSON API, documented at /docs.

    Requests carry the key that SPANLAB_API_KEY holds, or one that `spanlab keys` made; /healthz
    and /readyz need none.

    \b
    SPANLAB_API_KEY=a-key-of-sixteen-characters spanlab api --detector offline
    SPANLAB_API_KEY=a-key-of-sixteen-characters spanlab api --detector veritrail --option samples=3
    """
    from spanlab.cli import servers as serving
    from spanlab.integrations.offers import ServiceOffers
    from spanlab.jobs.worker import start_embedded_worker
    from spanlab.storage import Store

    try:
        from spanlab.integrations.api_jobs import ApiJobs
        from spanlab.integrations.gate import serve
        from spanlab.integrations.http_api import http_api
        from spanlab.integrations.traces import TraceInbox
    except ModuleNotFoundError as error:
        raise missing_package("the HTTP API", error.name, "api") from None
    offers = ServiceOffers(_select_offered(selection, detector or ["offline"], corpus), corpus)
    with Store.open() as store:
        inbox = TraceInbox(store, traces, settle=settle) if traces else None
        app = http_api(
            offers, ApiJobs(store, offers), Settings.read().api_key, rate=rate, traces=inbox
        )
        start_embedded_worker()
        if inbox is not None:
            inbox.start()
        address = f"http://{host}:{port}"
        lines = [f"{address}/docs says what can be asked."]
        if traces:
            lines += [
                f"Traces go into {traces!r}. Set for your pipeline:",
                f"  OTEL_EXPORTER_OTLP_TRACES_ENDPOINT={address}/v1/traces",
                "  OTEL_EXPORTER_OTLP_HEADERS=Authorization=Bearer%20KEY",
            ]
        typer.echo("\n".join(lines), err=True)
        if log_json:
            serving.log_json()
        ready = serving.HealthPaths(app, store.ping)
        serve(serving.RequestLog(ready), host, port)
        if inbox is not None:  # which may have traces that are not quiet yet
            inbox.close()


def _select_offered(
    selection: DetectorSelection, detectors: list[str], corpus: Path | None
) -> DetectorSelection:
    """Return what is offered; detectors search the corpus only where --search names a source."""
    passages = selection.passages
    if passages.kind != "given":
        passages = passages.model_copy(update={"corpus": corpus})
    return selection.model_copy(update={"detectors": tuple(detectors), "passages": passages})
