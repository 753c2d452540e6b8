"""`spanlab detectors`, `tools`, `check-model`, `encoder` and `calibrate`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from spanlab.base.redaction import visible
from spanlab.cli import console
from spanlab.cli.inputs import OptionsAmong, takes_options
from spanlab.detection import BrokenDetector, installed, spec_of
from spanlab.detection.entry import options_of
from spanlab.detection.selection import DetectorSelection

if TYPE_CHECKING:
    pass


def detectors(
    name: Annotated[
        str | None, typer.Argument(help="Print this one's configuration as JSON.")
    ] = None,
) -> None:
    """List the detectors: what each does and what it needs.

    With a name it prints the detector's configuration; an ensemble's can be changed and given to
    annotate with --config.

    \b
    spanlab detectors
    spanlab detectors ucsc > mine.json
    """
    if name is not None:
        typer.echo(spec_of(name).model_dump_json(indent=2, exclude_unset=True))
        return
    for detector_name, installed_detector in installed().items():
        if isinstance(installed_detector, BrokenDetector):
            lines = [
                f"cannot be used: {installed_detector.problem}",
                f"needs another {installed_detector.package}",
            ]
        else:
            lines = [installed_detector.what, f"needs {installed_detector.needs}"]
            options = ", ".join(option.shown for option in options_of(detector_name))
            lines += [f"options {options}"] if options else []
            lines += ["--config FILE replaces its members"] if installed_detector.members else []
        for label, line in zip((detector_name, "", "", ""), lines, strict=False):
            typer.echo(f"{label:<18} {line}")


def tools(
    servers: Annotated[
        list[str] | None, typer.Argument(help="Which servers (default: all).")
    ] = None,
) -> None:
    """Start tool servers, ours and those of tools.json, to see which tools may be called.

    \b
    Ours are wikipedia, search (the services whose keys are set) and papers.
    .spanlab/tools.json (or the file that SPANLAB_TOOLS names) has yours:
      {"servers": {"wiki": {"command": ["my-server"], "tools": ["search"], "env": ["WIKI_KEY"]},
                   "notes": {"url": "http://127.0.0.1:9000/mcp", "seconds": 5},
                   "mine": {"source": "corpus", "corpus": "my-index"}}}
    \b
    spanlab tools wikipedia
    spanlab annotate mine --detector mermaid --option tools=wikipedia
    """
    from spanlab.detection.models import ask_servers

    states = ask_servers(servers or ())
    for state in states:
        typer.echo(visible(f"{state.name}: {state.problem or 'answers'}"))
        for tool in state.tools:
            typer.echo(visible(f"  {tool.name}: {' '.join(tool.description.split())}"))
    if any(state.problem for state in states):
        raise typer.Exit(1)


Models = Annotated[DetectorSelection, OptionsAmong("detector", "model", "price", "model_option")]


@takes_options
def check_model(models: Models) -> None:
    """Ask a model one call of each kind: what its endpoint can do, what it costs, how fast it is.

    Then the detector annotates two invented answers with that model, one wrong and one right: so
    it is known before a long run whether the model can do this task at all. What came of it is
    kept for that endpoint and model, and later runs go by it: they ask for JSON by a schema where
    that works. With an ensemble all its members' models are checked. The exit status is 1 if one
    cannot do the task.

    \b
    spanlab check-model --model gpt-4o-mini
    spanlab check-model --detector ucsc
    """
    from spanlab.detection.models import check_models, check_table

    detectors = models.detectors or ("ucsc-extract",)
    checks = check_models(models.model_copy(update={"detectors": detectors}))
    console.write_tables(map(check_table, checks))
    trials = [trial for check in checks for trial in check.trials]
    if not all(trial.works for trial in trials if trial.is_task or trial.kind == "chat"):
        raise typer.Exit(1)
