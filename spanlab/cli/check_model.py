"""`spanlab check-model`: what the endpoint of a model can do."""

from __future__ import annotations

from typing import Annotated

import typer

from spanlab.cli.options import OptionsAmong, takes_options
from spanlab.workflows.detection.selection import DetectorSelection

Models = Annotated[DetectorSelection, OptionsAmong("detector", "model", "price", "model_option")]


@takes_options
def check_model(models: Models) -> None:
    """Ask a model one call of each kind: what its endpoint can do, what it costs, how fast it is.

    What came of it is kept for that endpoint and model, and later runs go by it: they ask for
    JSON by a schema where that works. With an ensemble all its members' models are checked.

    \b
    spanlab check-model --model gpt-4o-mini
    spanlab check-model --detector ucsc
    """
    from spanlab.cli import output
    from spanlab.workflows.detection.models import check_models, check_table

    detectors = models.detectors or ("ucsc-extract",)
    checks = check_models(models.model_copy(update={"detectors": detectors}))
    output.write_tables(map(check_table, checks))
    if not all(check.works("chat") for check in checks):
        raise typer.Exit(1)
