"""`spanlab check-model`: what the endpoint of a model can do."""

from __future__ import annotations

import typer

from spanlab.cli import model_options


def check_model(
    detector: model_options.Checked = None,
    model: model_options.Model = None,
    price: model_options.Price = None,
    model_option: model_options.ModelOption = None,
) -> None:
    """Ask a model one call of each kind: what its endpoint can do, what it costs, how fast it is.

    What came of it is kept for that endpoint and model, and later runs go by it: they ask for
    JSON by a schema where that works. With an ensemble all its members' models are checked.

    \b
    spanlab check-model --model gpt-4o-mini
    spanlab check-model --detector ucsc
    """
    from spanlab.cli import tables
    from spanlab.workflows.checking import check_models

    choice = model_options.choice(
        detector or ["ucsc-extract"], model, price=price, model_option=model_option
    )
    checks = check_models(choice)
    typer.echo("\n\n".join(map(tables.checked, checks)))
    if not all(check.works("chat") for check in checks):
        raise typer.Exit(1)
