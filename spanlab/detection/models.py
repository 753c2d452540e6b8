"""Models and tools of a run: endpoints tested, keys of a session, tool servers.

The key lies in the memory of the app's process. What is stored, such as a job's request, has a name
for it that means something in this process alone, so that such a job is worked on here and nowhere
else. When the process ends, or the session that gave the key, the key is gone. A job that has begun
keeps it until then; one that finds it gone says so, and what it has done stays.
"""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from statistics import median
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from spanlab.base.errors import ModelError, UsageError
from spanlab.base.inbound import foreign
from spanlab.base.runtime import wait
from spanlab.base.settings import EndpointSettings, ModelSettings, Settings, WebSearchSettings
from spanlab.detection import DetectorSpec, entry_of, specs_in
from spanlab.detection.planted import try_task
from spanlab.detection.selection import DetectorSelection
from spanlab.detection.specifications import specifications
from spanlab.models import Meter, ModelChoice
from spanlab.models.building import endpoint_client
from spanlab.models.choice import KEY, OPENAI, EndpointAddress
from spanlab.models.refusals import (
    SCHEMA,
    STRUCTURED,
    CheckedCall,
    ModelCheck,
    dialect_of,
    keep,
    recall,
)
from spanlab.output.tables import Column, ResultTable
from spanlab.schema import OWNER, Actor, Permission
from spanlab.search.providers import PROVIDERS
from spanlab.tools.mcp_servers import ServerState, server_states
from spanlab.tools.toolbox import chosen_servers, tool_servers

if TYPE_CHECKING:
    from dspy.lm15 import Request, Response

    from spanlab.models.client import EndpointClient


_QUESTION = "What is the capital of France? Answer with its name alone."
_FREELY = "What is the capital of France?"
_IN_JSON = f'{_FREELY} Answer with a JSON object: {{"capital": "…"}}'
_AT_ONCE = 4
_LISTED_IN = 5.0  # seconds
_ATTEMPTS = 1  # that may follow the first: somebody waits
_SCHEMA = {
    "type": "object",
    "properties": {"capital": {"type": "string"}},
    "required": ["capital"],
    "additionalProperties": False,
}
_BY_SCHEMA = {
    "type": "json_schema",
    "json_schema": {"name": "answer", "strict": True, "schema": _SCHEMA},
}


def check_models(
    choice: DetectorSelection, settings: Settings | None = None, *, actor: Actor = OWNER
) -> tuple[ModelCheck, ...]:
    """Try one call of each kind with each model of a choice, then its task; keep the results.

    Later runs go by them: they ask for JSON by a schema where the endpoint can do it. The task is
    a wrong and a right answer for each detector that reads the passages of its items.

    Args:
        choice: detectors, and how their models are asked.
        settings: where checks are kept; None reads the environment.
        actor: who asks; a lead of all datasets.

    Returns:
        One check for each model and endpoint. One that did not answer at all says why in its only
        trial, and is not kept.

    Raises:
        UsageError: nothing names a model, or no detector asks one.
        MissingKeyError: an endpoint needs a key and none is set.
    """
    actor.require(Permission.ADMINISTER)
    settings = settings or Settings.read()
    checks = [wait(_ModelCheck(model).run()) for model, _ in _models(choice)]
    for check in checks:
        if check.works("chat"):
            keep(check, settings)  # the detectors ask as it says
    specs = {(model.endpoint, model.model): specs for model, specs in _models(choice)}
    for number, check in enumerate(checks):
        if check.works("chat"):
            checks[number] = wait(_with_tasks(check, specs[check.endpoint, check.model], settings))
            keep(checks[number], settings)
    return tuple(checks)


async def _with_tasks(
    check: ModelCheck, specs: Iterable[DetectorSpec], settings: Settings
) -> ModelCheck:
    """Return a check with a trial of each detector's task, and what these calls have used."""
    meter = Meter()
    reading = (spec for spec in specs if not entry_of(spec.detector).reads_pages)
    trials = [await try_task(spec, meter, settings) for spec in reading]
    used, costs = meter.usage, (check.cost, meter.usage.cost)
    return check.model_copy(
        update={
            "trials": (*check.trials, *trials),
            "calls": check.calls + used.calls,
            "input_tokens": check.input_tokens + used.input_tokens,
            "output_tokens": check.output_tokens + used.output_tokens,
            "cost": None if None in costs else sum(filter(None, costs)),
        }
    )


def last_checks(
    choice: DetectorSelection, settings: Settings | None = None
) -> tuple[ModelCheck, ...]:
    """Return the kept checks of a choice's models, as many as there are."""
    checks = (recall(model.endpoint, model.model, settings) for model, _ in _models(choice))
    return tuple(check for check in checks if check is not None)


def _models(choice: DetectorSelection) -> list[tuple[ModelChoice, list[DetectorSpec]]]:
    """Return the models that a choice asks, each with its endpoint once, and whose main it is."""
    models: dict[tuple[str, str], tuple[ModelChoice, list[DetectorSpec]]] = {}
    for spec in (detector for chosen in specifications(choice) for detector in specs_in(chosen)):
        main = next((spec.models.get(role) for role in entry_of(spec.detector).roles), None)
        for model in filter(None, (spec.model, *spec.models.values())):
            _, specs = models.setdefault((model.endpoint, model.model), (model, []))
            specs += [spec] if model is (main or spec.model) else []
    if not models:
        raise UsageError(f"{' and '.join(map(repr, choice.detectors))} asks no model")
    return list(models.values())


@dataclass
class _ModelCheck:
    """The check of one model, while its calls are made."""

    choice: ModelChoice
    meter: Meter = field(default_factory=Meter)
    trials: list[CheckedCall] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)  # of each call that was made alone
    refused: frozenset[str] = frozenset()
    window: int | None = None

    async def run(self) -> ModelCheck:
        choice = self.choice
        client = endpoint_client(choice.model_copy(update={"retries": _ATTEMPTS}), self.meter)
        first = await self._try("chat", client, _QUESTION)
        answered = None if first is None else first.usage.output_tokens
        if first is not None:
            await self._options(client)
            await self._try("system role", client, _QUESTION, system="You are brief.")
            await self._try("JSON", client, _IN_JSON, response_format={"type": "json_object"})
            await self._try(STRUCTURED, client, _FREELY, response_format=_BY_SCHEMA)
            counted = first.usage.input_tokens is not None
            note = "" if counted else "the endpoint counts no tokens"
            self.trials.append(CheckedCall(kind="usage", works=counted, note=note))
            await self._parallel(client)
            self.window = await client.window()
        usage, seconds = self.meter.usage, median(self.seconds)
        dialect_of(choice.endpoint, choice.model).refused = self.refused
        return ModelCheck(
            model=choice.model,
            endpoint=choice.endpoint,
            at=datetime.now(UTC).isoformat(timespec="seconds"),
            trials=tuple(self.trials),
            refused=tuple(sorted(self.refused)),
            seconds=round(seconds, 3),
            window=self.window,
            speed=round(answered / seconds, 1) if answered else None,
            calls=usage.calls,
            input_tokens=usage.input_tokens,
            output_tokens=usage.output_tokens,
            cost=usage.cost,
        )

    async def _options(self, client: EndpointClient) -> None:
        """Try the options that the model is asked with, one after the other."""
        for name in ("temperature", "top_p", "seed", "max_tokens", "reasoning_effort"):
            value = getattr(self.choice, name)
            if value is not None:
                await self._try(name, client, _QUESTION, **{name: value})

    async def _parallel(self, client: EndpointClient) -> None:
        began = time.perf_counter()
        calls = (
            client.complete(_request(self.choice, f"{n}. {_QUESTION}")) for n in range(_AT_ONCE)
        )
        results = await asyncio.gather(*calls, return_exceptions=True)
        failed = [str(error) for error in results if isinstance(error, BaseException)]
        times = (time.perf_counter() - began) / median(self.seconds)
        note = failed[0] if failed else f"{_AT_ONCE} calls at once took {times:.1f} times one"
        self.trials.append(CheckedCall(kind="parallel", works=not failed, note=note))

    async def _try(
        self, kind: str, client: EndpointClient, question: str, **request_fields: Any
    ) -> Response | None:
        """Make a call of a kind and note whether it works; return the response if there is one."""
        dialect, began = dialect_of(self.choice.endpoint, self.choice.model), time.perf_counter()
        dialect.refused = frozenset()
        try:
            response = await client.complete(_request(self.choice, question, **request_fields))
        except ModelError as error:
            self.trials.append(CheckedCall(kind=kind, works=False, note=str(error)))
            return None
        finally:
            self.seconds.append(time.perf_counter() - began)
        in_other_form = dialect.refused == {SCHEMA}  # a schema all the same
        text, note = response.text or "", "" if in_other_form else "; ".join(dialect.remarks)
        if not note and "response_format" in request_fields and not _fits(text):
            note = f"the answer is not the JSON asked for: {text[:80]!r}"
        self.trials.append(CheckedCall(kind=kind, works=not note, note=note))
        # Of a schema the form of the answer alone is refused, not all forms.
        self.refused |= dialect.refused if kind != STRUCTURED else dialect.refused & {SCHEMA}
        return response


def _request(
    choice: ModelChoice, question: str, system: str = "", **request_fields: Any
) -> Request:
    from dspy.lm15 import request_from_openai_chat

    system_messages = [{"role": "system", "content": system}] if system else []
    messages = [*system_messages, {"role": "user", "content": question}]
    return request_from_openai_chat({"model": choice.model, "messages": messages, **request_fields})


def _fits(answer: str) -> bool:
    """Say whether an answer is the JSON object asked for, whatever the model thought before it."""
    try:
        answered = json.loads(answer.rpartition("</think>")[2])
    except ValueError:
        return False
    return isinstance(answered, dict) and isinstance(answered.get("capital"), str)


def check_table(check: ModelCheck) -> ResultTable:
    """Return a table of the calls that were tried with a model, and which of them work."""
    return ResultTable(
        key="check",
        title=f"{check.model} at {check.endpoint}",
        columns=tuple(Column(key=key, title="") for key in ("call", "works", "note")),
        rows=tuple(
            (trial.kind, "yes" if trial.works else "no", trial.note) for trial in check.trials
        ),
        remarks=(check.figures,),
    )


SEARCH_KEY: Final = WebSearchSettings.variable("search_api_key")


@dataclass(frozen=True)
class ModelEnvironment:
    """The settings of language models in the environment, without keys.

    ``model`` and ``price`` are empty if they are not set. ``endpoint`` is the address of the API
    without user, password and query. ``problem`` says what has to be set before any model can be
    asked, None if nothing. ``search_variables`` are the variables of search services that are set.
    """

    model: str
    price: str
    endpoint: str
    has_key: bool
    problem: str | None
    has_search_key: bool = False
    search_variables: frozenset[str] = frozenset()


def model_environment(
    environ: Mapping[str, str] = os.environ, *, set_up: bool = False
) -> ModelEnvironment:
    """Return the settings of language models in the environment.

    Args:
        environ: the environment variables.
        set_up: whether somebody has given an endpoint or a key elsewhere.
    """
    endpoint, models = EndpointSettings.read(environ), ModelSettings.read(environ)
    url, has_key = endpoint.base_url, bool(endpoint.api_key)
    problem = None
    if not has_key and not url and not set_up:
        problem = (
            "No language model can be reached yet. Give an endpoint or an API key for this session "
            f"below. To keep them, set OPENAI_BASE_URL or {KEY} before the app starts."
        )
    return ModelEnvironment(
        model=models.model,
        price=models.price,
        endpoint=_bare(url) if url else OPENAI,
        has_key=has_key,
        problem=problem,
        has_search_key=bool(environ.get(SEARCH_KEY, "").strip()),
        search_variables=frozenset(
            name
            for provider in PROVIDERS.values()
            for name in provider.variables
            if environ.get(name, "").strip()
        ),
    )


def _bare(url: str) -> str:
    """Return an address without its parts that may be secret: user, password and query."""
    try:
        parts = urlsplit(url)
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        return "an invalid address"
    return f"{parts.scheme}://{parts.hostname or ''}{port}{parts.path}".rstrip("/")


_NO_KEY = "no key in the browser"  # never the environment's: the address is somebody else's


def session_model(model: str, endpoint: str, key: str) -> ModelChoice:
    """Return a model as it was set up in the browser.

    Args:
        model: its name.
        endpoint: the address of the API; empty for the environment's.
        key: the name under which the key was lent; empty for none, which with an endpoint means
            that it gets none, not even the environment's.

    Raises:
        UsageError: the model has no name, or the address is none.
    """
    if not model.strip():
        raise UsageError("name the model that is to be asked, for example gpt-4o-mini")
    try:
        url = str(EndpointAddress.parse(endpoint.strip())) if endpoint.strip() else None
    except ValueError as error:
        raise UsageError(f"the endpoint is not an address: {error}") from None
    name = key or (_NO_KEY if url else "")
    return ModelChoice(model=model.strip(), base_url=url, **({"api_key_env": name} if name else {}))


LOCAL_SERVERS: Final = {
    "Ollama": "http://127.0.0.1:11434/v1",
    "LM Studio": "http://127.0.0.1:1234/v1",
    "vLLM": "http://127.0.0.1:8000/v1",
    "llama.cpp": "http://127.0.0.1:8080/v1",
}


def list_models(endpoint: str, key: str = "") -> tuple[str, ...]:
    """Return the names of the models that an endpoint has, sorted.

    Args:
        endpoint: its address; empty for the environment's.
        key: as in ``session_model``.

    Raises:
        ModelError: it does not answer, or has no list.
        UsageError: the address is none.
    """
    return wait(_list_models(endpoint, key))


def find_local_servers() -> dict[str, tuple[str, ...]]:
    """Ask this machine's usual ports for models; return those of each address that answers."""

    async def ask() -> list[tuple[str, ...] | BaseException]:
        asking = map(_list_models, LOCAL_SERVERS.values())
        return await asyncio.gather(*asking, return_exceptions=True)

    found = zip(LOCAL_SERVERS.values(), wait(ask()), strict=True)
    return {address: names for address, names in found if isinstance(names, tuple)}


async def _list_models(endpoint: str, key: str = "") -> tuple[str, ...]:
    choice = session_model("any", endpoint, key).model_copy(update={"timeout": _LISTED_IN})
    with foreign(f"{choice.endpoint} lists no models", ModelError):
        listed = await endpoint_client(choice, Meter()).list_models()
        return tuple(sorted(str(model["id"]) for model in listed))


def server_names() -> list[str]:
    """Return the names of the servers that a detector may ask, ours first.

    Raises:
        InputError: the file of servers is wrong.
    """
    return list(tool_servers(Settings.read()))


def ask_servers(names: Iterable[str] = ()) -> list[ServerState]:
    """Ask tool servers for their tools; waits until all have answered or failed.

    Args:
        names: names of the servers; empty for all.

    Raises:
        InputError: the file of servers is wrong.
        UsageError: no server is called so, or the SDK is not installed.
    """
    settings = Settings.read()
    servers = chosen_servers(settings, ",".join(names)) or tool_servers(settings)
    return wait(server_states(servers))
