"""`spanlab push`: to Hugging Face's Hub, or verdicts back to where traces live."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from spanlab.base.errors import UsageError
from spanlab.output.figures import counted


def push(
    dataset: Annotated[str, typer.Argument(help="The dataset, or a version DATASET@NAME.")],
    repository: Annotated[
        str | None, typer.Argument(help="ORGANISATION/NAME at the Hub; not with --to.")
    ] = None,
    public: Annotated[
        bool,
        typer.Option("--public", help="If the repository is new, make it public."),
    ] = False,
    to: Annotated[
        Literal["phoenix", "langfuse", "mlflow"] | None,
        typer.Option(help="Send verdicts back to where the items' traces live."),
    ] = None,
    annotator: Annotated[
        str | None, typer.Option(help="With --to: whose verdicts, a detector, person or vote.")
    ] = None,
    url: Annotated[
        str | None, typer.Option(help="With --to: the server, such as http://localhost:6006.")
    ] = None,
    timeout: Annotated[
        float, typer.Option(min=0.1, help="With --to: seconds that a request may take.")
    ] = 30.0,
) -> None:
    """Write a dataset with all annotations to Hugging Face's Hub, or verdicts back to its traces.

    At the Hub: data/train.jsonl, and a card. The repository is made if it is not there. One that
    is there keeps its other files, and earlier versions of these two in its history. HF_TOKEN holds
    the token. What was pushed is read back by `spanlab import hf://ORGANISATION/NAME`, or
    `datasets.load_dataset`.

    With --to, each item that came from a trace gets a score "hallucination" there: the share of the
    answer's characters that the annotator marks as hallucinated. Its metadata has the spans with
    offsets. What is pushed again replaces what was. Keys are those of the environment:
    PHOENIX_API_KEY; LANGFUSE_PUBLIC_KEY and LANGFUSE_SECRET_KEY; MLFLOW_TRACKING_TOKEN, or
    MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD. Exit status 1: nothing was pushed, 3:
    some failed.

    \b
    spanlab push mine ORGANISATION/NAME
    spanlab push traces --to phoenix --annotator offline --url http://localhost:6006
    """
    from spanlab.cli import console
    from spanlab.storage import Store

    if to is not None:
        if repository or not (annotator and url):
            raise UsageError("--to needs --annotator and --url, and no repository")
        from spanlab.integrations.pushing import PushRequest, push_dataset_verdicts

        request = PushRequest(annotator, to, url, timeout)
        with Store.open() as store, console.bar("pushing", unit="items") as advance:
            report = push_dataset_verdicts(store, dataset, request, advance)
        console.say(f"pushed verdicts of {annotator} on {counted(report.pushed, 'item')} to {to}")
        for line in report.remarks():
            console.say(line)
        raise typer.Exit(report.status)
    if repository is None:
        raise UsageError("name a repository ORGANISATION/NAME, or with --to where traces live")
    from spanlab.data.exporting import push_dataset

    with Store.open() as store:
        where, left_out = push_dataset(store, dataset, repository, public=public)
    console.say(f"pushed {dataset!r} to {where}")
    if left_out:
        console.say(left_out)
