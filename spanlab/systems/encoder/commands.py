"""`spanlab encoder` and `spanlab calibrate`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from spanlab.base.errors import UsageError
from spanlab.cli import console, inputs
from spanlab.cli.inputs import OptionsAmong, takes_options
from spanlab.detection.selection import DetectorSelection
from spanlab.formats import ReadOptions, read
from spanlab.formats.files import replacing
from spanlab.output.figures import figure
from spanlab.systems.encoder import checkpoints

if TYPE_CHECKING:
    from spanlab.output.tables import MeanInterval
    from spanlab.schema import Record
    from spanlab.systems.encoder.check import EncoderCheck, ProbeResult


app = typer.Typer(
    no_args_is_help=True,
    help="Get, train, convert, list and check checkpoints for encoder and encoder-nli.",
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
    spanlab encoder fetch ORGANISATION/NAME --revision main --weights model.onnx
    """
    name_fetched, origin = checkpoints.fetch(
        name, revision, weights, on_file=lambda file: console.say(f"fetching {file}")
    )
    console.say(f"{name} at commit {origin.commit} is in {name_fetched.folder}")
    console.say(checkpoints.next_command(name_fetched, name))


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
    folder = checkpoints.convert(source, output)
    name = source if output is None else str(output)
    console.say(f"wrote {folder.weights}; look at it: spanlab encoder check {name}")
    console.say(checkpoints.next_command(folder, name))


@app.command("list")
def list_() -> None:
    """List the checkpoints that were fetched, with commit, size and labels."""
    if not checkpoints.fetched_checkpoints():
        console.say("none was fetched yet: spanlab encoder fetch ORGANISATION/NAME")
    for checkpoint_name, origin in checkpoints.fetched_with_origin():
        size = checkpoint_name.weights.stat().st_size / 2**20
        labels = ", ".join(checkpoint_name.labels) or "labels without names, or none"
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
    spanlab encoder check ORGANISATION/NAME --option supported=supported
    """
    from spanlab.systems.encoder.check import check_encoder

    options = DetectorSelection.checked({"options": option or ()}).options
    encoder_check = check_encoder(name, options)
    for label, text in _check_lines(encoder_check).items():
        typer.echo(f"{label:<10} {text}")


def _check_lines(encoder_check: EncoderCheck) -> dict[str, str]:
    supported = ", ".join(
        encoder_check.labels[number] for number in sorted(encoder_check.supported)
    )
    lost = ", ".join(encoder_check.scripts)
    size = encoder_check.checkpoint.weights.stat().st_size / 2**20
    return {
        "network": f"{encoder_check.checkpoint.weights.name}, {size:,.1f} MiB, classifies "
        f"{encoder_check.classifies}; SHA-256 {encoder_check.digest}",
        "labels": f"{', '.join(encoder_check.labels)}; these mean supported: {supported}",
        "window": f"{encoder_check.window:,} tokens",
        "offsets": f"lost characters in: {lost}" if lost else "exact in all scripts tried",
        "speed": f"{encoder_check.tokens:,} tokens in {1000 * encoder_check.seconds:,.1f} ms",
        **{f"probe {probe.lang}": _describe_probe(probe) for probe in encoder_check.probes},
    }


def _describe_probe(probe: ProbeResult) -> str:
    verdict = "tells them apart" if probe.of_wrong > probe.of_right else "does not tell them apart"
    return (
        f"“{probe.right}” is right: hallucinated with {probe.of_right:.2f}; “{probe.wrong}” is "
        f"wrong: {probe.of_wrong:.2f} ({verdict})"
    )


@app.command()
@takes_options
def train(
    files: Annotated[list[str], typer.Argument(help="Labelled files or globs.")],
    base: Annotated[
        str,
        typer.Option(help="Folder with model.safetensors, tokenizer.json and config.json."),
    ],
    output: Annotated[Path, typer.Option("-o", "--output", help="The folder to write.")],
    reading: Annotated[ReadOptions, OptionsAmong("contexts")],
    annotator: Annotated[
        str | None,
        typer.Option(help="The annotator to learn from (default: all people, else gold)."),
    ] = None,
    epochs: Annotated[int, typer.Option(min=1, help="How often every item is read.")] = 4,
    folds: Annotated[
        int,
        typer.Option(
            min=0,
            help="Number of folds for held-out scores and the calibration; each is one more "
            "training. 0: none.",
        ),
    ] = 3,
    seed: Annotated[int, typer.Option(min=0, help="Random seed.")] = 0,
    rate: Annotated[float, typer.Option(help="Highest learning rate.")] = 1e-4,
) -> None:
    """Train a checkpoint of your own for the detector encoder, on labelled items.

    It needs the extras: pip install 'spanlab[encoder,transformers]'. The scores are of items that
    were not learnt from; those with the same passages are held out together.

    \b
    spanlab encoder train val/*.jsonl --contexts contexts/ --base all-MiniLM-L6-v2/ -o mine/
    """
    from spanlab.systems.encoder import training

    if folds == 1:
        raise UsageError("--folds 1 leaves nothing to learn from: 2 or more, or 0 for none")
    how = training.EncoderTraining(base, output, annotator, epochs, folds, seed, rate)
    with console.steps("training") as on_progress:
        note = training.train(_records_in(files, reading), how, on_progress=on_progress)
    compared = {"held out": note.held_out, "mark-none": note.mark_none, "mark-all": note.mark_all}
    for name, scores in compared.items():
        if scores is not None:
            console.say(f"{name}: IoU {_estimate(scores.iou)}, Corr {_estimate(scores.corr)}")
    console.say(
        f"wrote {output} in {note.minutes:.1f} minutes, from {sum(note.items.values()):,} items"
    )
    calibrated = f" --option calibration={output / training.CALIBRATION}" if note.held_out else ""
    console.say(f"use it: --detector encoder --option model={output}{calibrated}")


def _estimate(scores: MeanInterval) -> str:
    return f"{figure(scores.mean)} ({figure(scores.low)} to {figure(scores.high)})"


@takes_options
def calibrate(
    source: Annotated[list[str], typer.Argument(help="A dataset, or labelled files or globs.")],
    option: Annotated[
        list[str],
        typer.Option(
            "--option",
            help="An option of the detector encoder, NAME=VALUE: at least model=FOLDER. "
            "Repeatable.",
        ),
    ],
    output: Annotated[Path, typer.Option("-o", "--output", help="The file of the calibration.")],
    reading: Annotated[ReadOptions, OptionsAmong("contexts")],
    method: Annotated[
        Literal["temperature", "isotonic"],
        typer.Option(help="Temperature scaling (one figure), or isotonic regression."),
    ] = "temperature",
    annotator: Annotated[
        str | None,
        typer.Option(
            help="Annotators whose labels are used (default: those of all people, else gold)."
        ),
    ] = None,
) -> None:
    """Calibrate the probabilities of the detector encoder on labelled items.

    It says the expected calibration error and the IoU before and after, each on the half of the
    items that was not learnt from. Detectors use it with --option calibration=FILE.

    \b
    spanlab calibrate mine --option model=ORGANISATION/NAME -o learnt.json
    spanlab calibrate val.jsonl --option model=ORGANISATION/NAME --method isotonic -o learnt.json
    """
    from spanlab.systems.encoder import calibration as workflow

    options = DetectorSelection.checked({"options": option}).options
    with console.bar("rating", unit="items") as advance:
        calibrated = workflow.calibrate(
            _records(source, reading), options, method, annotator=annotator, on_progress=advance
        )
    with replacing(output) as file:
        file.write(f"{calibrated.calibration.model_dump_json(indent=2)}\n".encode())
    for name, quality in (("before", calibrated.before), ("after", calibrated.after)):
        console.say(
            f"{name}: calibration error {quality.error:.3f}, IoU {quality.iou:.3f} (held out)"
        )
    if calibrated.unread:
        console.say(f"left out {calibrated.unread:,} items that the checkpoint cannot read")
    learnt = calibrated.calibration
    console.say(
        f"wrote {output}: {learnt.method}, threshold {learnt.threshold}, from {learnt.items:,} "
        f"items with {learnt.words:,} words"
    )


def _records(source: list[str], reading: ReadOptions) -> Iterator[Record]:
    from spanlab.storage import Store

    if inputs.are_files(source):
        yield from _records_in(source, reading)
        return
    if reading.contexts is not None:
        raise UsageError("--contexts is for files: a dataset has its passages")
    with Store.open() as store:
        yield from store.records(source[0])


def _records_in(files: list[str], reading: ReadOptions) -> Iterator[Record]:
    options = reading.model_copy(update={"on_warning": console.say})
    for file in inputs.find_files(files):
        yield from read(file, options)
