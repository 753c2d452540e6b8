"""The parts of the guide that come from the code; run as a script, it writes them anew.

A part stands between two comments of its page, ``<!-- made: NAME ARGUMENTS -->`` and
``<!-- end -->``; NAME is one of ``MAKERS``.
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable, Iterator, Mapping
from itertools import groupby
from pathlib import Path
from typing import Any

from figures import figures
from pydantic import BaseModel

import spanlab
from spanlab import doors
from spanlab.base.guide import FOLDER, INDEX, GuidePage, guide_pages
from spanlab.base.options import Option
from spanlab.base.settings import EndpointSettings, ModelSettings, Settings, WebSearchSettings
from spanlab.detection import DetectorEntry, entries, entry_of, spec_of
from spanlab.detection.entry import options_of
from spanlab.detection.estimate import typical_cost
from spanlab.integrations.pushing import ACCESS
from spanlab.measure.sampling import reviews_for
from spanlab.search.providers import PROVIDERS
from spanlab.search.spec import WRITER
from spanlab.ui.editor_keys import ADJUDICATION_KEYS, KEYS, EditorKey

_PART = re.compile(r"(<!-- made: ([\w -]+) -->\n).*?(<!-- end -->)", re.DOTALL)
_LINK = re.compile(r"\[([^]]*)\]\((?:\.\./systems/)(\w+/[\w-]+\.md)(#[\w-]+)?\)")
_SYSTEMS = FOLDER.with_name("systems")
_SECTION = re.compile(r"^(Args|Returns|Raises|Attributes|Yields):$", re.MULTILINE)


def made_anew(text: str) -> str:
    """Return a page of the guide with its generated parts as the code has them now.

    Of links to pages of a system that was taken out, the words remain.
    """

    def part(found: re.Match[str]) -> str:
        name, *arguments = found[2].split()
        made = "\n".join(MAKERS[name](*arguments)).strip()
        return f"{found[1]}\n{made}\n\n{found[3]}"

    def link(found: re.Match[str]) -> str:
        return found[0] if (_SYSTEMS / found[2]).is_file() else found[1]

    return _PART.sub(part, _LINK.sub(link, text))


def _systems() -> Iterator[str]:
    """Every page of a system."""
    for page in guide_pages():
        if not page.in_menu:
            yield f"- [{page.title}]({_of_system(page)}): {page.about}."


def _of_system(page: GuidePage) -> str:
    """Return where a system's page is, as pages in the guide's folder write it."""
    return f"../systems/{page.path.relative_to(_SYSTEMS)}"


def _commands() -> Iterator[str]:
    """Every command with what it is for."""
    yield "| command | what it does |\n| --- | --- |"
    for name, command in doors.commands().items():
        yield f"| `spanlab {name}` | {_cell(command.about)} |"


def _python() -> Iterator[str]:
    """Every public name with its signature and its docstring."""
    for name in spanlab.__all__:
        thing = getattr(spanlab, name)
        yield f"## spanlab.{name}\n"
        if isinstance(thing, type) and issubclass(thing, BaseModel):
            yield _described(thing.__doc__ or "")
            yield "\n| field | type | |\n| --- | --- | --- |"
            homes = [vars(each).get("__annotations__", {}) for each in thing.__mro__]
            for field, about in thing.model_fields.items():
                kind = next(home[field] for home in homes if field in home)
                needed = "needed" if about.is_required() else ""
                yield f"| `{field}` | `{_cell(kind)}` | {needed} |"
            yield ""
        else:
            yield f"```text\n{name}{_signature(thing)}\n```\n"
            yield f"{_described(thing.__doc__ or '')}\n"


def _signature(thing: Any) -> str:
    """Return a signature on one line, or with a parameter a line."""
    signature = inspect.signature(thing)
    written = list(_parameters(signature))
    after = f") -> {signature.return_annotation}"
    whole = f"({', '.join(written)}{after}"
    if len(whole) < 80:
        return whole
    return "\n".join(["(", *(f"    {each}," for each in written), after])


def _parameters(signature: inspect.Signature) -> Iterator[str]:
    """Yield parameters as they are written; annotations are texts already."""
    stars: Mapping[Any, str] = {
        inspect.Parameter.VAR_POSITIONAL: "*",
        inspect.Parameter.VAR_KEYWORD: "**",
    }
    kinds = [each.kind for each in signature.parameters.values()]
    for number, each in enumerate(signature.parameters.values()):
        before = kinds[number - 1] if number else each.POSITIONAL_ONLY
        if each.kind is each.KEYWORD_ONLY and before not in {each.kind, each.VAR_POSITIONAL}:
            yield "*"
        default = "" if each.default is each.empty else f" = {each.default!r}"
        yield f"{stars.get(each.kind, '')}{each.name}: {each.annotation}{default}"


def _described(text: str) -> str:
    """Return a docstring of Google's style as Markdown."""
    first, *sections = _SECTION.split(inspect.cleandoc(text))
    found = [first.strip()]
    for title, body in zip(sections[::2], sections[1::2], strict=True):
        if title in {"Returns", "Yields"}:
            found.append(f"{title}: {' '.join(body.split())}")
            continue
        entries_ = re.split(r"\n(?=\S)", inspect.cleandoc(body))
        rows = (" ".join(each.split()).partition(": ") for each in entries_ if each.strip())
        found.append(f"{title}:\n\n" + "\n".join(f"- `{name}`: {of}" for name, _, of in rows))
    return "\n\n".join(found).replace("``", "`")


def _keys(which: str) -> Iterator[str]:
    for group, keys in groupby(_KEYS[which], lambda key: key.group):
        yield f"### {group}\n\n| key | what it does |\n| --- | --- |"
        for key in keys:
            names = " or ".join(f"`{_cell(name)}`" for name in key.keys)
            yield f"| {names} | {key.does} |"
        yield ""


_KEYS: Mapping[str, tuple[EditorKey, ...]] = {
    "review": KEYS,
    "adjudicate": tuple(key for key in ADJUDICATION_KEYS if key.group.startswith("Adjudicate")),
}


def _detectors() -> Iterator[str]:
    """All detectors by what they need, with what they cost."""
    described = (
        (name, page)
        for page in guide_pages()
        for name in re.findall(r"<!-- made: entry ([\w-]+) -->", page.path.read_text("utf-8"))
    )
    pages = {name: _of_system(page) for name, page in described}
    for group, members in groupby(sorted(entries(), key=_place), lambda each: each.group):
        yield f"### Needs {group}\n\n| detector | what it does | cost of an answer |"
        yield "| --- | --- | --- |"
        for entry in members:
            link = f"[`{entry.name}`]({pages[entry.name]})"
            yield f"| {link} {entry.title} | {entry.what} | {typical_cost(entry)} |"
        yield ""


def _place(entry: DetectorEntry) -> int:
    return ("nothing", "a model", "a model and a search", "a checkpoint").index(entry.group)


def _entry(name: str) -> Iterator[str]:
    """What a detector says of itself, with its options."""
    entry = entry_of(name)
    yield f"**{entry.title}.** `{name}` needs {entry.needs}."
    yield f"Cost of an answer: {typical_cost(entry)}."
    if entry.members:
        members = ", ".join(f"`{each.name}`" for each in getattr(spec_of(name), "members", ()))
        yield f"Its members are {members}."
    if entry.roles:
        yield f"Roles of its models: {', '.join(f'`{role}`' for role in entry.roles)}."
    if entry.prompts:
        yield f"Prompts that can be tuned, on {entry.tuned_on}: {', '.join(entry.prompts)}."
    options = options_of(name)
    if options:
        yield "\n| option | default | values | meaning |\n| --- | --- | --- | --- |"
        for option in options:
            default = "" if option.default in (None, "") else f"`{option.default}`"
            meaning = _cell(option.about or option.label)
            yield f"| `{option.name}` | {default} | {_values(option)} | {meaning} |"


def _values(option: Option) -> str:
    if option.choices:
        return ", ".join(f"`{choice}`" for choice in option.choices)
    low, high = option.low, option.high
    if low is not None and high is not None:
        return f"{low:,g} to {high:,g}"
    if low is not None:
        return f"{'above' if option.above else 'at least'} {low:,g}"
    return str(option.kind)


def _cell(text: object) -> str:
    return str(text).replace("|", "\\|").replace("\n", " ")


def _languages() -> Iterator[str]:
    """How good the shipped model of ``offline`` is in each language, by its card."""
    card = Path(spanlab.__file__).parent / "systems" / "offline" / "model.json"
    scores = json.loads(card.read_text(encoding="utf-8"))["scores"][:-1]  # of answers to questions
    yield f"| IoU/Corr | {' | '.join(mode['mode'] for mode in scores)} |"
    yield f"|{' --- |' * (1 + len(scores))}"
    for lang in scores[0]["languages"]:
        cells = ("/".join(f"{x:.3f}"[1:] for x in mode["languages"][lang]) for mode in scores)
        yield f"| {lang} | {' | '.join(cells)} |"


def _reviews() -> Iterator[str]:
    """How many reviews a rate takes, by its size, its margin and the detector's correlation."""
    margins, correlations = (0.1, 0.05, 0.03), (0.0, 0.5, 0.8)
    titles = [f"± {100 * margin:.0f}, ρ {rho:g}" for margin in margins for rho in correlations]
    yield f"| rate | {' | '.join(titles)} |\n|{' --- |' * (1 + len(titles))}"
    for rate in (0.02, 0.05, 0.1, 0.2, 0.3, 0.5):
        cells = (f"{reviews_for(h, rate, rho):,}" for h in margins for rho in correlations)
        yield f"| {100 * rate:.0f} % | {' | '.join(cells)} |"


def _coverage() -> Iterator[str]:
    """How often intervals hold the true rate, by what `bench_rates` kept."""
    rates = figures("rates")
    yield "| rate of | lowest share |\n| --- | --- |"
    items, few = _share(rates["items"]), _share(rates["items with 30 reviews"])
    yield f"| the dataset's answers and claims | {items}; with 30 reviews {few} |"
    length, others = rates["characters by length"], rates["characters otherwise"]
    yield f"| its characters, long answers drawn more often (the default) | {_share(length)} |"
    yield f"| … drawn with other sampling probabilities | {_share(others)} |"
    yield f"| future answers | {_share(rates['future'])} |"
    covered, alarms = rates["clusters"]
    yield f"| future answers, 2 to 20 answers to each of 10 to 40 questions | {_share(covered)} |"
    yield f"| answers, 8 to 60 of which the detector learnt from | {_share(rates['learnt'])} |\n"
    yield f"The lowest of {rates['settings']} settings; of the last two rows, of 200 samples each."
    yield f"Two equal systems differ “significantly” in at most {100 * alarms:.1f} % of the samples"
    yield "with several answers to a question (p below .05)."


def _width() -> Iterator[str]:
    """How much of the possible gain is reached, by how many findings there are."""
    yield "| findings among the reviews | mean share of the possible gain | lowest |"
    yield "| --- | --- | --- |"
    for low, high, mean, lowest in reversed(figures("rates")["gains"]):
        many = f"{low} to {high}" if high < 1000 else f"{low} or more"
        yield f"| {many} | {mean:.2f} | {lowest:.2f} |"


def _gate() -> Iterator[str]:
    """How often the gate fails, by what `bench_rates` kept."""
    gate = figures("gate")
    rows = {
        (rate, paired): (reviews, more, none) for rate, paired, reviews, more, none in gate["rows"]
    }
    yield "| rate | mean reviews on each side | between two datasets | between two models, paired |"
    yield "| --- | --- | --- | --- |"
    for rate in dict.fromkeys(rate for rate, _ in rows):
        reviews, *apart = rows[rate, False]
        _, *together = rows[rate, True]
        changes = (
            f"rises from {_share(rate)} to {_share(rate + 0.05)}",
            f"stays at {_share(rate)}",
        )
        for change, one, other in zip(changes, apart, together, strict=True):
            yield f"| {change} | {reviews:,.0f} | {100 * one:.1f} % | {100 * other:.1f} % |"
    yield f"\nEach row has {gate['runs']} runs, with 2,000 answers on each side."


def _share(figure: float) -> str:
    return f"{figure:.3f}".removeprefix("0")


def _variables() -> Iterator[str]:
    yield "| variable | what it holds | what that is for |\n| --- | --- | --- |"
    for variable, (holds, about) in variables().items():
        yield f"| `{variable}` | {_cell(holds)} | {_cell(about)} |"


def variables() -> dict[str, tuple[str, str]]:
    """Return what every environment variable that is read holds, and what that is for."""
    known: dict[str, tuple[str, str]] = {}
    for settings in (Settings, EndpointSettings, ModelSettings, WebSearchSettings):
        for name, field in settings.model_fields.items():
            unset = field.default if isinstance(field.default, str | int | float | Path) else ""
            holds = f"{field.title} (`{unset}`)" if unset != "" else str(field.title)
            known[settings.variable(name)] = (holds, str(field.description))
            if special := settings.per_role(name):
                known[settings.variable(name, "role")] = (str(field.title), special.description)
    for service in PROVIDERS.values():
        known |= {name: (holds, service.title) for name, holds in service.variables.items()}
    for program, names in ACCESS.items():
        known |= dict.fromkeys(names, ("a key", f"Of {program}, for `spanlab push`."))
    endpoint = EndpointSettings.model_fields
    for name in (entry.name for entry in entries() if entry.members):
        for model in (member.model for member in getattr(spec_of(name), "members", ())):
            if model and model.base_url_env:
                about = f"Another endpoint, of a member of {name}."
                known[model.base_url_env] = (str(endpoint["base_url"].title), about)
                known[model.api_key_env] = (str(endpoint["api_key"].title), "That endpoint's key.")
    return known


def variables_of_roles() -> set[str]:
    """Return the environment variables that every role and every detector has of its own."""
    roles = {WRITER} | {role for entry in entries() for role in (entry.name, *entry.roles)}
    fields = filter(ModelSettings.per_role, ModelSettings.model_fields)
    return {ModelSettings.variable(field, role) for field in fields for role in roles}


MAKERS: Mapping[str, Callable[..., Iterator[str]]] = {
    "commands": _commands,
    "coverage": _coverage,
    "detectors": _detectors,
    "entry": _entry,
    "gate": _gate,
    "keys": _keys,
    "languages": _languages,
    "python": _python,
    "reviews": _reviews,
    "systems": _systems,
    "variables": _variables,
    "width": _width,
}


if __name__ == "__main__":
    for path in (FOLDER / f"{INDEX}.md", *(page.path for page in guide_pages())):
        now = path.read_text(encoding="utf-8")
        if (anew := made_anew(now)) != now:
            path.write_text(anew, encoding="utf-8")
