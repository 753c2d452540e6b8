"""The commands that serve the app: on one's own datasets, or on the samples."""

from __future__ import annotations

from typing import Annotated

import typer

from spanlab.cli.options import LogJson


def serve(
    port: Annotated[
        int | None, typer.Option(min=1, max=65535, help="Default 8501, or the next free one.")
    ] = None,
    host: Annotated[
        str,
        typer.Option(help="The address to listen on; other machines need SPANLAB_ALLOWED_HOSTS."),
    ] = "127.0.0.1",
    log_json: LogJson = False,
) -> None:
    """Serve the app on this machine until Ctrl+C.

    /healthz says that it runs, /readyz that its database answers, too.

    \b
    spanlab serve
    spanlab serve --port 8600
    """
    from spanlab.cli import server

    server.become_server(port, host, log_json=log_json)


def demo(
    port: Annotated[int | None, typer.Option(min=1, max=65535, help="As in serve.")] = None,
    prepare_only: Annotated[
        bool, typer.Option("--prepare-only", help="Make the dataset, do not serve.")
    ] = False,
) -> None:
    """Import the samples once, let the offline detector and a vote mark them, and serve the app.

    Run again, it keeps all work and only serves.

    \b
    spanlab demo
    spanlab demo --prepare-only
    """
    from spanlab.cli import progress, server
    from spanlab.storage import Store
    from spanlab.workflows.detection.dataset_run import unfinished_positions
    from spanlab.workflows.importing import DATASET, detection_of_samples, prepare_samples

    request = detection_of_samples()
    with Store.open() as store, progress.bar("preparing", unit="items") as advance:
        prepare_samples(store, on_progress=advance)
        left = len(unfinished_positions(store, request))
    if left:
        from spanlab.cli import working

        working.sum_up(working.detect(request, left))
        progress.say(f"dataset {DATASET!r} is ready: {left} items")
    if not prepare_only:
        server.become_server(port)
