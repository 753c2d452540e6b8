"""`spanlab encoder`: checkpoints of local encoders."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from spanlab.workflows.training.encoder_check import EncoderCheck, ProbeResult

app = typer.Typer(
    no_args_is_help=True,
    help="Get, convert, list and check checkpoints for the detectors encoder and encoder-nli.",
)

Weights = Annotated[
    str,
    typer.Option(
        help="The ONNX file, such as onnx/model_int8.onnx (default: model.onnx, else the weights "
        "in safetensors)."
    ),
]


@app.command()
def fetch(
    name: Annotated[str, typer.Argument(help="ORGANISATION/NAME at the Hugging Face hub.")],
    revision: Annotated[str, typer.Option(help="A branch, tag or commit.")] = "main",
    weights: Weights = "",
) -> None:
    """Fetch a checkpoint from the hub: network, tokenizer and configuration, nothing else.

    The commit and the SHA-256 of each file are kept, and the detectors run no other weights under
    that name. Pickles are not fetched.

    \b
    spanlab encoder fetch ORGANISATION/NAME --revision 1f3c… --weights onnx/model_int8.onnx
    """
    from spanlab.cli import progress
    from spanlab.workflows.training import encoders

    found, origin = encoders.fetch(
        name, revision, weights, on_file=lambda file: progress.say(f"fetching {file}")
    )
    progress.say(f"{name} at commit {origin.commit} is in {found.folder}")
    progress.say(encoders.next_command(found, name))


@app.command()
def convert(
    source: Annotated[
        str, typer.Argument(help="A folder with model.safetensors, or the name of a fetched one.")
    ],
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="The folder to write (default: onnx in that one)."),
    ] = None,
) -> None:
    """Export a PyTorch checkpoint to ONNX, where torch and optimum are installed.

    \b
    spanlab encoder convert ORGANISATION/NAME
    spanlab encoder convert lettucedect/ -o lettucedect-onnx/
    """
    from spanlab.cli import progress
    from spanlab.workflows.training import encoders

    found = encoders.convert(source, output)
    name = source if output is None else str(output)
    progress.say(f"wrote {found.weights}; look at it: spanlab encoder check {name}")
    progress.say(encoders.next_command(found, name))


@app.command("list")
def list_() -> None:
    """List the checkpoints that were fetched, with commit, size and labels."""
    from spanlab.cli import progress
    from spanlab.workflows.training import encoders

    if not encoders.fetched_checkpoints():
        progress.say("none was fetched yet: spanlab encoder fetch ORGANISATION/NAME")
    for found, origin in encoders.fetched():
        size = found.weights.stat().st_size / 2**20
        labels = ", ".join(found.labels) or "labels without names, or none"
        typer.echo(f"{origin.name}  {origin.commit[:12]}  {size:,.1f} MiB  {labels}")


@app.command()
def check(
    name: Annotated[str, typer.Argument(help="A folder, or the name of a fetched checkpoint.")],
    option: Annotated[
        list[str] | None,
        typer.Option("--option", help="An option of its detector, NAME=VALUE. Repeatable."),
    ] = None,
) -> None:
    """Load a checkpoint, try it on built-in probes, and say what was found.

    \b
    spanlab encoder check my-checkpoint/ --option supported=LABEL_0
    """
    from spanlab.workflows.detection.selection import DetectorSelection
    from spanlab.workflows.training.encoder_check import check_encoder

    options = DetectorSelection.checked({"options": option or ()}).options
    found = check_encoder(name, options)
    for label, text in _lines(found).items():
        typer.echo(f"{label:<10} {text}")


def _lines(found: EncoderCheck) -> dict[str, str]:
    supported = ", ".join(found.labels[number] for number in sorted(found.supported))
    lost = ", ".join(found.scripts)
    size = found.checkpoint.weights.stat().st_size / 2**20
    return {
        "network": f"{found.checkpoint.weights.name}, {size:,.1f} MiB, classifies "
        f"{found.classifies}; SHA-256 {found.digest}",
        "labels": f"{', '.join(found.labels)}; these mean supported: {supported}",
        "window": f"{found.window:,} tokens",
        "offsets": f"lost characters in: {lost}" if lost else "exact in all scripts tried",
        "speed": f"{found.tokens:,} tokens in {1000 * found.seconds:,.1f} ms",
        **{f"probe {probe.lang}": _probe(probe) for probe in found.probes},
    }


def _probe(probe: ProbeResult) -> str:
    told = "tells them apart" if probe.of_wrong > probe.of_right else "does not tell them apart"
    return (
        f"“{probe.right}” is right: hallucinated with {probe.of_right:.2f}; “{probe.wrong}” is "
        f"wrong: {probe.of_wrong:.2f} ({told})"
    )
