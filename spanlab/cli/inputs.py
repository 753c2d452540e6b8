"""Inputs of commands: options made from option models, shared ones, and names of files."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

import typer

from spanlab.base.errors import InputError, UsageError, unreadable
from spanlab.base.fields import storable
from spanlab.base.options import Option, OptionModel, options_in

_TYPES: dict[str, Any] = {
    "integer": int | None,
    "number": float | None,
    "path": Path | None,
    "list": list[str] | None,
    "pairs": list[str] | None,
}


class OptionsWithout:
    """Leaves out options of a model: ``Annotated[Model, OptionsWithout("key")]`` lacks its key."""

    def __init__(self, *keywords: str) -> None:
        self.keywords = frozenset(keywords)

    def has(self, option: Option) -> bool:
        """Say whether the command takes an option from the model."""
        return option.keyword not in self.keywords


class OptionsAmong(OptionsWithout):
    """Takes only these options of a model: ``Annotated[Model, OptionsAmong("model", "price")]``."""

    def has(self, option: Option) -> bool:
        """Say whether the command takes an option from the model."""
        return option.keyword in self.keywords


def takes_options(function: Callable[..., None]) -> Callable[..., None]:
    """Make a command of a function some of whose parameters are option models.

    Each of these parameters becomes the options of its model; the function gets the model, with
    what the command line said. Its other parameters stay as they are.

    Raises:
        TypeError: two options have the same name.
    """
    hints = get_type_hints(function, include_extras=True)
    own = inspect.signature(function).parameters.values()
    models: dict[str, tuple[type[OptionModel], list[Option]]] = {}
    parameters = [_CONTEXT]
    for parameter in own:
        hint = hints[parameter.name]
        model, which = _model_in(hint)
        if model is None:
            parameters.append(
                parameter.replace(annotation=hint, kind=inspect.Parameter.KEYWORD_ONLY)
            )
            continue
        options = [
            option
            for option in options_in(model)
            if "command" in option.sides and which.has(option)
        ]
        models[parameter.name] = model, options
        parameters += map(_make_parameter, options)

    def command(context: typer.Context, **arguments: Any) -> None:
        for name, (model, options) in models.items():
            values = {
                option.keyword: _split_value(option, arguments.pop(option.keyword))
                for option in options
            }
            arguments[name] = model.checked(
                {key: value for key, value in values.items() if _is_given(context, key)}
            )
        function(**arguments)

    command.__name__ = function.__name__
    all_options = (option for _, options in models.values() for option in options)
    listing = dict.fromkeys(option.listed_by for option in all_options if option.listed_by)
    further = (
        f"\n\n    Further options depend on the files: `{lists}` lists them." for lists in listing
    )
    command.__doc__ = "".join((function.__doc__ or "", *further))
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # typer reads it
    command.__annotations__ = {}
    return command


_CONTEXT = inspect.Parameter("context", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context)


def _model_in(hint: Any) -> tuple[type[OptionModel] | None, OptionsWithout]:
    which: OptionsWithout = OptionsWithout()
    if get_origin(hint) is Annotated:
        hint, *marks = get_args(hint)
        which = next((mark for mark in marks if isinstance(mark, OptionsWithout)), which)
    is_model = isinstance(hint, type) and issubclass(hint, OptionModel)
    return (hint if is_model else None), which


def _make_parameter(option: Option) -> inspect.Parameter:
    names = list(option.flags)
    kind = _TYPES.get(option.kind, str | None)
    default = option.default
    bounds: dict[str, Any] = {}
    if option.kind == "choice":
        kind = Literal[option.choices] | None
    elif option.kind == "flag":
        kind = bool
        names = [f"{names[-1]}/--no-{names[-1][2:]}"] if default and "/" not in names[-1] else names
    elif option.kind in {"list", "pairs"}:
        default, kind = None, str | None if option.commas else kind
    elif option.kind in {"integer", "number"}:
        bounds = {"min": option.low, "max": option.high}
        bounds = {name: _as_integer(value) for name, value in bounds.items() if value is not None}
        if option.above:  # typer's own ranges hold their ends
            bounds["callback"] = _check_above(bounds["min"])
    shown = typer.Option(*names, help=option.about, hidden=bool(option.listed_by), **bounds)
    return inspect.Parameter(
        option.keyword,
        inspect.Parameter.KEYWORD_ONLY,
        default=default or None if option.kind == "text" else default,
        annotation=Annotated[kind, shown],
    )


def _check_above(least: float) -> Callable[[float | None], float | None]:
    def check(value: float | None) -> float | None:
        if value is not None and value <= least:
            raise typer.BadParameter(f"{value:g} is not greater than {least}.")
        return value

    return check


def _split_value(option: Option, value: Any) -> Any:
    if option.commas and value is not None:
        return [part.strip() for part in value.split(",") if part.strip()]
    return value


def _as_integer(value: float) -> float:
    return int(value) if float(value).is_integer() else value


def _is_given(context: typer.Context, name: str) -> bool:
    source = context.get_parameter_source(name)
    return source is not None and source.name not in {"DEFAULT", "DEFAULT_MAP"}


class SpanCleanup(StrEnum):
    """How raw spans are trimmed before they vote."""

    NONE = "none"
    MUSHROOM = "mushroom"


def _not_a_dash(path: Path | None) -> Path | None:
    """Take ``-`` for standard output, as other commands do."""
    return None if path == Path("-") else path


LogJson = Annotated[
    bool, typer.Option("--log-json", help="Logs as JSON, with a line for every request.")
]

Output = Annotated[
    Path | None,
    typer.Option(
        "-o",
        "--output",
        callback=_not_a_dash,
        help="File to write; without it, or with -, standard output.",
    ),
]

_TEXT_MOST = 400_000


def find_files(patterns: Sequence[str]) -> list[Path]:
    """Return the files that paths, globs and datasets of the Hub name; see ``files_named``.

    Raises:
        UsageError, InputError: see ``files_named`` and ``hub.fetch_dataset``.
    """
    from spanlab.formats.files import files_named
    from spanlab.formats.hub import PREFIX, fetch_dataset  # help is not to wait for it

    return [
        path
        for name in patterns
        for path in (fetch_dataset(name) if name.startswith(PREFIX) else files_named([name]))
    ]


@contextmanager
def datasets_as_files(
    arguments: Sequence[str | None], annotator: str | None = None
) -> Iterator[list[str]]:
    """Write datasets named by arguments, and versions, to files that last as long as the block.

    What detectors say of answers that they learnt from is left out, and said. Of the ``annotator``
    all stays where it learnt from all, with a warning.
    """
    from spanlab.cli import console
    from spanlab.formats.writers import write
    from spanlab.schema import LearntAnswers
    from spanlab.storage import Store
    from spanlab.storage.datasets import summary_of

    with TemporaryDirectory() as folder:
        names = [argument or "" for argument in arguments]
        for at, name in enumerate(names):
            if name and not are_files([name]):
                names[at] = str(Path(folder, f"{at}.jsonl"))
                with Store.open() as store:
                    learnt = LearntAnswers(summary_of(store, name).settings)
                    write(map(learnt.set_aside, store.records(name)), Path(names[at]))
                    remarks = learnt.remarks
                    if annotator and annotator in learnt.counts and annotator not in learnt.kept:
                        write(store.records(name), Path(names[at]))
                        remarks = (
                            f"WARNING: {annotator} learnt from all {learnt.counts[annotator]:,} of "
                            "these answers: this is how well it remembers them, on others it is "
                            "worse.",
                        )
                if name not in arguments[:at]:
                    for remark in remarks:
                        console.say(remark)
        try:
            yield names
        except InputError as error:  # of which nobody knows the temporary file
            for name, given in zip(names, arguments, strict=True):
                if given and name != given:
                    error.file = given if error.file == name else error.file
                    error.what = error.what.replace(name, given)
            raise


def are_files(source: Sequence[str]) -> bool:
    """Return whether arguments mean files; a single name that is not a file means a dataset."""
    if len(source) > 1:
        return True
    name = source[0]
    looks_like_path = "/" in name or "\\" in name or any(mark in name for mark in "*?[")
    return looks_like_path or Path(name).exists() or Path(name).suffix in {".jsonl", ".json"}


def read_text(path: Path) -> str:
    """Return the text of a file of at most 400,000 bytes.

    Raises:
        InputError: there is no such file, it is larger, or no UTF-8.
    """
    from spanlab.formats.files import check_file

    check_file(path)
    try:
        with path.open("rb") as file:
            text = file.read(_TEXT_MOST + 1)
        if len(text) > _TEXT_MOST:
            raise InputError(f"larger than {_TEXT_MOST:,} bytes", file=path)
        return storable(text.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise InputError("this is not UTF-8", file=path, expected="a text in UTF-8") from error
    except OSError as error:
        raise unreadable(path, error) from error


def split_sides(arguments: Sequence[str]) -> tuple[list[Path], list[Path]]:
    """Split the arguments of `score` into predictions and gold.

    Two arguments are one side each. A shell that expands globs passes more: then the sides part
    where the directory changes, if that happens exactly once.

    Raises:
        UsageError: there is no such single place; the globs have to be quoted.
        InputError: a path does not exist, or a glob matches nothing.
    """
    if len(arguments) < 2:
        raise UsageError(
            "score wants PRED and GOLD, for example: spanlab score pred.jsonl val.jsonl"
        )
    folders = [Path(argument).parent for argument in arguments]
    cuts = [at for at in range(1, len(folders)) if folders[at] != folders[at - 1]]
    if len(arguments) == 2:
        cuts = [1]
    if len(cuts) != 1:
        raise UsageError(
            "it is not clear which files are PRED and which are GOLD; quote the globs: "
            "spanlab score 'pred/*.jsonl' 'gold/*.jsonl'"
        )
    return find_files(arguments[: cuts[0]]), find_files(arguments[cuts[0] :])


def split_names(text: str | None) -> tuple[str, ...]:
    """Return names that commas separate; none of no text."""
    return tuple(name for name in (text or "").split(",") if name)
