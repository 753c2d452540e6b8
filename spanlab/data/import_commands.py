"""`spanlab import` and `spanlab index`: files into a dataset, a corpus into an index."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Final, Literal

import typer

from spanlab.base.errors import InputError, UsageError
from spanlab.cli import console, inputs
from spanlab.cli.inputs import takes_options
from spanlab.data.import_files import in_folders
from spanlab.data.import_preview import preview_import
from spanlab.data.importing import ImportOptions, RejectsFile, describe_fields, import_files
from spanlab.data.joining import join_annotations
from spanlab.data.predictions import import_predictions
from spanlab.data.pulling import TraceSource, pull_traces
from spanlab.formats import recipe_of
from spanlab.formats.registry import options_of, titles
from spanlab.output.figures import counted, named_ids
from spanlab.output.tables import fact_table
from spanlab.schema import AnnotatorKind
from spanlab.search.index import build
from spanlab.storage import Store
from spanlab.storage.datasets import questions_of
from spanlab.text.languages import in_a_terminal


@takes_options
def import_command(
    files: Annotated[
        list[str],
        typer.Argument(
            help="Files, globs, or folders: GraphRAG's output, Hugging Face's datasets; or "
            "hf://ORGANISATION/NAME, maybe with @REVISION or /PATH; or traces at "
            "langfuse+URL or phoenix+URL, maybe with ?project=NAME&limit=NUMBER."
        ),
    ],
    options: ImportOptions,
    dataset: Annotated[
        str,
        typer.Option(
            help="The dataset to make, or to add items to; --dry-run needs none.",
            show_default=False,
        ),
    ] = "",
    rejects: Annotated[
        Path | None, typer.Option(help="Where --skip-bad writes (default DATASET.rejects.jsonl).")
    ] = None,
    questions: Annotated[
        Path | None,
        typer.Option(
            help="Questions for a dataset that has none: a labelling configuration of Label "
            "Studio (XML), or JSON as for `spanlab datasets --questions`. By default those "
            "that the responses in an export of Label Studio show.",
            dir_okay=False,
        ),
    ] = None,
    kind: Annotated[
        Literal["detector", "person"], typer.Option(help="What the annotator of --as is.")
    ] = "detector",
    join: Annotated[
        bool,
        typer.Option(
            "--join",
            help="The dataset has these items: add the files' annotations to them, under their "
            "own names. Ids and answers must be equal.",
        ),
    ] = False,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Show the first records as they would be; store nothing."),
    ] = False,
) -> None:
    """Read files into a dataset.

    With --as no items are added: what the files mark becomes an annotation of the items with the
    same ids, and replaces earlier ones of that name. With --join all annotations in the files are
    added to these items, under their own names and kinds.

    \b
    spanlab import answers.jsonl --dataset mine
    spanlab import val/*.jsonl --dataset val --contexts contexts/
    spanlab import outputs.csv --dataset mine --column answer=response --column id=key
    spanlab import big.jsonl --dataset big --skip-bad
    spanlab import chats.jsonl --column passages=docs.content --dry-run
    spanlab import results.json --dataset results --recipe our-evaluation.toml
    spanlab import chats.jsonl --dataset turns --turns all
    spanlab import evaluation.json --dataset rag --records results.items
    spanlab import ragtest/output --dataset rag --query "Who paid?" --answer "Ada paid Bo."
    spanlab import saved_dataset/ --dataset hub --column answer=response
    spanlab import hf://ORGANISATION/NAME --dataset hub
    spanlab import phoenix+http://localhost:6006 --dataset traces
    spanlab import project.json --dataset labels --questions config.xml
    spanlab import submission.jsonl --dataset val --as my-system
    """
    if not dataset and not dry_run:
        raise UsageError("--dataset is missing: the dataset to make, or to add items to")
    if options.system is not None or join or kind != "detector":
        if dry_run:
            raise UsageError("--dry-run is for items, not for predictions (--as) or --join")
        _annotate_known(files, dataset, options, kind, join=join)
        return
    with TemporaryDirectory() as folder:
        paths = in_folders(inputs.find_files(_with_traces(files, Path(folder))))
        if dry_run:
            preview = preview_import(paths, options)
            console.write_tables(preview.tables())
            _warn(preview.warning)
            typer.echo(f"\n# {_RECIPE}\n{recipe_of(paths[0], options)}", nl=False)
            return
        question_settings = None
        if questions is not None:
            question_settings = questions_of(inputs.read_text(questions), questions)
        target = rejects or Path(f"{dataset.replace('/', '_')}.rejects.jsonl")
        with RejectsFile(target) as left_out:
            reading = options.model_copy(update={"on_reject": left_out.add})
            try:
                with Store.open() as store, console.bar("importing", unit="items") as advance:
                    done = import_files(
                        store,
                        paths,
                        dataset,
                        reading,
                        questions=question_settings,
                        on_progress=advance,
                    )
            finally:
                if left_out.count:
                    console.say(f"left out {counted(left_out.count, 'bad record')}; see {target}")
                    for line in left_out.kinds.lines():
                        console.say(line)
        if not done.items:
            why = f"all {left_out.count:,} records are bad" if left_out.count else "there are none"
            raise InputError(f"no item was imported into {dataset!r}: {why}")
        for warning in done.warnings:
            console.say(in_a_terminal(warning))
        console.say(f"imported {counted(done.items, 'item')} into {dataset!r}")
        if told := describe_fields(done.fields):
            console.say(f"fields: {told}")
        _warn(done.missing)


def formats(
    name: Annotated[
        str | None, typer.Argument(help="List the options that this one alone has.")
    ] = None,
) -> None:
    """List formats and their options, which all commands that read files take.

    \b
    spanlab formats
    spanlab formats json
    """
    if name is None:
        facts = {
            one: "; options ".join(
                filter(None, (title, ", ".join(option.flags[-1] for option in options_of(one))))
            )
            for one, title in titles().items()
            if one != "auto"
        }
    else:
        facts = {option.flags[-1]: option.about for option in options_of(name)}
    console.write_tables([fact_table("formats", "", facts or {"options": "none"})])


def _with_traces(files: list[str], folder: Path) -> list[str]:
    """Fetch the traces that are named by address into files in a folder, and name these."""
    named = list(files)
    for at, name in enumerate(files):
        if (source := TraceSource.named(name)) is not None:
            target = folder / f"{at}" / f"{source.program}.jsonl"
            target.parent.mkdir()
            with console.bar("fetching", unit="traces") as advance:
                number = pull_traces(source, target, on_progress=advance)
            console.say(f"fetched {counted(number, 'trace')}")
            named[at] = str(target)
    return named


_RECIPE = "How it is read. Save this as a file, and --recipe FILE reads others of the kind so."


def _warn(text: str) -> None:
    if text:
        typer.secho(f"WARNING: {text}", err=True, fg=typer.colors.YELLOW, bold=True)


def _annotate_known(
    files: list[str], dataset: str, options: ImportOptions, kind: str, *, join: bool
) -> None:
    """Add annotations to items that the dataset has."""
    if join and options.system is not None:
        raise UsageError("--join keeps the names that the files have, --as gives one: not both")
    if join:
        _join(files, dataset, options)
    elif options.system is None:
        raise UsageError("--kind says what the annotator of --as is")
    else:
        _import_predictions(files, dataset, options, AnnotatorKind(kind))


_OF_ITEMS: Final = ("contexts", "skip_bad", "same_ids", "model", "lang")


def _import_predictions(
    files: list[str], dataset: str, options: ImportOptions, kind: AnnotatorKind
) -> None:
    unsaid = ImportOptions()
    for name in _OF_ITEMS:
        if getattr(options, name) != getattr(unsaid, name):
            raise UsageError(f"--{name.replace('_', '-')} is about items, and --as adds none")
    system = options.system or ""
    with Store.open() as store, console.bar("importing", unit="items") as advance:
        paths = inputs.find_files(files)
        done = import_predictions(
            store, paths, dataset, system, kind=kind, options=options, on_progress=advance
        )
    _say_unmatched(done.unmatched, dataset)
    console.say(f"{counted(done.items, 'item')} of {dataset!r} annotated as {system!r}")
    _warn(done.replaced_in_words)


def _join(files: list[str], dataset: str, options: ImportOptions) -> None:
    paths = in_folders(inputs.find_files(files))
    remarks: dict[str, None] = {}
    options = options.model_copy(update={"on_warning": remarks.setdefault})
    with Store.open() as store, console.bar("importing", unit="items") as advance:
        done = join_annotations(store, paths, dataset, options, advance)
    for remark in remarks:
        console.say(remark)
    _say_unmatched(done.unmatched, dataset)
    console.say(f"joined {counted(done.items, 'annotation')} to the items of {dataset!r}")
    _warn(done.replaced_in_words)


def _say_unmatched(unmatched: tuple[str, ...], dataset: str) -> None:
    if unmatched:
        shown = named_ids(unmatched)
        console.say(f"{counted(len(unmatched), 'id')} {dataset!r} does not have: {shown}")


def index(
    corpus: Annotated[
        Path,
        typer.Argument(
            help="JSONL with text, and title, url, date, id if there are any; or a directory of "
            ".txt, .md and .html files."
        ),
    ],
    output: Annotated[Path, typer.Option("-o", "--output", help="The directory of the index.")],
    longest: Annotated[
        int, typer.Option(min=100, max=100_000, help="Characters of a passage at most.")
    ] = 1200,
    stems: Annotated[
        bool, typer.Option("--stems/--no-stems", help="Let forms of a word find each other.")
    ] = True,
) -> None:
    """Index a corpus, so that detectors can look things up in it by BM25.

    Documents are split into passages where paragraphs and sentences end. An index that is there
    already is replaced once the new one is whole.

    \b
    spanlab index wiki.jsonl -o wiki.index
    spanlab index pages/ -o pages.index --longest 800
    """
    with console.bar("indexing", unit="passages") as advance:
        done = build(corpus, output, longest=longest, stems=stems, on_progress=advance)
    console.say(
        f"indexed {counted(done.documents, 'document')} as {counted(done.passages, 'passage')} "
        f"in {output} (fingerprint {done.fingerprint[:8]})"
    )
