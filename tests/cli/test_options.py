"""Every option is set from every side that it names, and arrives in what is asked for."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import typer
from cli_fixtures import Run
from guide_parts import variables, variables_of_roles
from pydantic import BaseModel, HttpUrl

from optimizers.choosing import SearchOptions
from spanlab.base.errors import UsageError
from spanlab.base.guide import FOLDER
from spanlab.base.options import Option, OptionModel, options_in
from spanlab.base.settings import Settings
from spanlab.cli.inputs import takes_options
from spanlab.data.export_choice import ExportChoice
from spanlab.data.importing import ImportOptions
from spanlab.detection.request import RunOptions
from spanlab.formats import recipes
from spanlab.formats.registry import options_of
from spanlab.models import Meter
from spanlab.schema.usage import Budget, Usage

ROOT = Path(__file__).resolve().parents[2]
MODELS: tuple[type[OptionModel], ...] = (RunOptions, SearchOptions, ImportOptions, ExportChoice)


def options() -> Iterator[object]:
    for model in MODELS:
        for option in options_in(model):
            yield pytest.param(model, option, id=f"{model.__name__}-{'.'.join(option.path)}")


RECIPE = Path(recipes.__file__).with_name("opencompass.toml")  # which is read when it is named


def other(option: Option) -> Any:
    """A value that is not the default."""
    if option.choices and option.kind == "list":
        return list(option.choices[:2])
    if option.choices:
        return next(choice for choice in option.choices if choice != option.default)
    value: dict[str, Any] = {
        "flag": not option.default,
        "integer": 7,
        "number": 0.75,
        "path": str(RECIPE) if option.name == "recipe" else "some/path",
        "list": ["one", "two"],
        "pairs": {"seed": "3"},
        "text": "nb" if option.name == "lang" else "words",
    }
    return value[option.kind]


def as_words(option: Option, value: Any) -> list[str]:
    """The value as a command line has it."""
    flag, _, opposite = option.flags[-1].partition("/")
    if option.kind == "flag":
        return [flag if value else opposite or f"--no-{flag[2:]}"]
    if option.kind == "pairs":
        return [word for name, given in value.items() for word in (flag, f"{name}={given}")]
    if option.kind == "list":
        return [flag, ",".join(value)] if option.commas else [w for v in value for w in (flag, v)]
    return [flag, str(value)]


def found_in(filled: BaseModel, option: Option) -> Any:
    value: Any = filled
    for part in option.path:
        value = value[part] if isinstance(value, dict) else getattr(value, part)
    if isinstance(value, tuple | Mapping):
        return type(other(option))(value)
    return str(value) if option.kind == "path" else value


def by_command(model: type[OptionModel], words: list[str]) -> OptionModel:
    """What a command with the options of a model gets."""
    given: list[OptionModel] = []

    def command(filled: OptionModel) -> None:
        given.append(filled)

    command.__annotations__["filled"] = model
    app = typer.Typer(pretty_exceptions_enable=False)
    app.command()(takes_options(command))
    app(words, standalone_mode=False)
    return given[0]


@pytest.mark.parametrize(("model", "option"), list(options()))
def test_an_option_is_the_same_from_the_command_line_and_from_python(
    model: type[OptionModel], option: Option
) -> None:
    if option.kind == "text" and option.name == "retriever":
        return  # a specification; test_doors has it
    value = other(option)
    written = model.checked({option.keyword: value})
    assert found_in(written, option) == value
    assert model.model_validate_json(written.model_dump_json()) == written
    if "command" in option.sides:
        assert by_command(model, as_words(option, value)) == written
        # What nobody says is left to the defaults, and not written out.
        assert by_command(model, []).model_fields_set == set()


@pytest.mark.parametrize(("model", "option"), list(options()))
def test_a_value_out_of_bounds_is_refused(model: type[OptionModel], option: Option) -> None:
    outside = {"low": option.low, "high": option.high}
    for side, bound in outside.items():
        if bound is not None:
            with pytest.raises(UsageError, match=option.name):
                model.checked({option.keyword: bound - 1 if side == "low" else bound + 1})
    with pytest.raises(UsageError, match="no option named 'nonsense'"):
        model.checked({"nonsense": 1})


@pytest.mark.parametrize("command", ["import", "annotate"])
def test_help_has_the_general_options_of_reading_and_says_what_lists_those_of_a_format(
    command: str, spanlab: Run
) -> None:
    own = {option.flags[-1] for option in options_of()}
    assert {"--requests", "--records", "--turns", "--speaker", "--sources", "--query"} <= own
    told = spanlab(command, "--help").stdout
    shown = {*re.findall(r"^ +(--[a-z-]+)", told, re.MULTILINE)}
    assert {"--recipe", "--contexts", "--column"} <= shown
    assert not own & shown
    assert "Further options depend on the files: `spanlab formats NAME`" in told
    assert own <= {*re.findall(r"--[a-z-]+", spanlab("formats").stdout)}
    of_traces = spanlab("formats", "traces").stdout
    assert (of_traces.split()[0], of_traces.count("--turns")) == ("--hallucinated-if", 0)
    assert "no format 'nothing'" in spanlab("formats", "nothing").stderr


def test_a_default_that_a_page_shows_is_not_said_of_files_of_other_formats() -> None:
    assert ImportOptions().having(turns="last", records=None).own == {}
    assert ImportOptions().having(turns="all").own == {"turns": "all"}
    assert ImportOptions(own={"turns": "all"}).having(turns="last", speaker="max").own == {
        "speaker": "max"
    }


def test_every_limit_of_a_budget_bounds_the_sum_of_its_name() -> None:
    for name in Budget.model_fields:
        assert hasattr(Usage(), name), name
        meter = Meter(Budget(**{name: 1}))
        assert getattr(meter.budget, name) == 1


@pytest.mark.parametrize("field", Settings.model_fields)
def test_every_variable_of_the_settings_is_read(
    field: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    variable = Settings.variable(field)
    monkeypatch.delenv(variable, raising=False)
    unset = getattr(Settings.read(), field)
    monkeypatch.setenv(variable, "")
    assert getattr(Settings.read(), field) == unset
    if field == "webhooks":
        monkeypatch.setenv("SPANLAB_WEBHOOK_SECRET", "a-secret-of-programs")
    words = {"webhooks": "http://7", "url": "http://7", "invite": "yes", "oidc_scope": "openid 7"}
    said = words.get(field, "7")
    monkeypatch.setenv(variable, said)
    told = (HttpUrl("http://7"),)
    assert getattr(Settings.read(), field) in (said, Path("7"), frozenset({"7"}), 7, told, True)


@pytest.mark.system("ucsc")
def test_every_variable_that_the_code_names_is_defined_and_stands_in_the_guide() -> None:
    """The table there is a generated part: see ``tests/full/test_guide.py``."""
    assert "<!-- made: variables -->" in (FOLDER / "settings.md").read_text("utf-8")
    named = {
        variable
        for folder in ("spanlab", "optimizers")
        for path in (ROOT / folder).rglob("*.py")
        for variable in re.findall(
            r"\b(?:SPANLAB|OPENAI)_[A-Z_]*[A-Z]\b|\b[A-Z_]+_API_KEY\b", path.read_text("utf-8")
        )
    }
    assert named <= variables_of_roles() | set(variables())


@pytest.mark.parametrize("limit", ["0", "-1", "much", "1.5"])
def test_a_variable_that_cannot_be_says_what_would_be_right(
    limit: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPANLAB_RECORD_LIMIT", limit)
    with pytest.raises(UsageError, match=f"RECORD_LIMIT={limit}: it is a number of MiB, 1 or more"):
        Settings.read()


@pytest.mark.parametrize(
    ("variables", "told"),
    [
        ({"SPANLAB_OIDC_ISSUER": "https://a.example"}, "a login needs SPANLAB_OIDC_CLIENT_ID"),
        ({"SPANLAB_URL": "spans.example.org"}, "an address such as https://spanlab.example.org"),
        ({"SPANLAB_URL": "https://a.example/spanlab"}, "SPANLAB_URL"),
        ({"SPANLAB_ALLOWED_HOSTS": "https://a.example/"}, "SPANLAB_ALLOWED_HOSTS"),
    ],
)
def test_no_server_starts_on_settings_that_are_wrong(
    spanlab: Run, variables: dict[str, str], told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.execv", lambda *_: pytest.fail("this process became the server"))
    done = spanlab("serve", **variables)
    assert done.returncode == 2
    assert told in done.stderr
