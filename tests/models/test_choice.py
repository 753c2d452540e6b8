"""Which model, where and at what price, from arguments and environment."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from spanlab.base.errors import MissingKeyError, UsageError
from spanlab.models import (
    ModelChoice,
    ModelLayers,
    ModelOptions,
    TokenPrice,
    count_tokens,
    key_of,
    redact,
)
from spanlab.models.secrets import headers_of


def test_the_environment_names_model_endpoint_and_price() -> None:
    choice = ModelLayers(
        {
            "SPANLAB_MODEL": "llama-3.3-70b",
            "OPENAI_BASE_URL": "http://127.0.0.1:8000/v1/",
            "SPANLAB_PRICE": "0.5, 0.25, 2",
        }
    ).resolve()
    assert choice.model == "llama-3.3-70b"
    assert choice.endpoint == "http://127.0.0.1:8000/v1"
    assert choice.host == "127.0.0.1:8000"
    assert choice.price == TokenPrice(input=0.5, cached=0.25, output=2)


def test_a_role_has_its_own_model_and_falls_back_to_the_general_one() -> None:
    environ = {"SPANLAB_MODEL": "gpt-4o-mini", "SPANLAB_MODEL_UCSC_REVISE": "o1"}
    assert ModelLayers(environ).resolve(roles=["ucsc-revise"]).model == "o1"
    assert ModelLayers(environ).resolve(roles=["ucsc-extract"]).model == "gpt-4o-mini"


def test_a_named_model_goes_before_the_environment() -> None:
    assert ModelLayers({"SPANLAB_MODEL": "a"}, model="b").resolve(roles=["c"]).model == "b"


def test_without_any_model_the_message_says_how_to_name_one() -> None:
    with pytest.raises(UsageError, match="SPANLAB_MODEL"):
        ModelLayers({}).resolve()


OWN = ModelChoice(
    model="member", base_url_env="LLAMA_URL", api_key_env="LLAMA_KEY", seed=1, top_p=1
)
SET_UP = ModelChoice(model="mine", base_url="http://mine/v1", api_key_env="MY_KEY", seed=4)
VARIABLES = {"SPANLAB_MODEL": "general", "OPENAI_BASE_URL": "http://general/v1"} | {
    "SPANLAB_MODEL_OPTIONS": "seed=2,max_tokens=9,judge.seed=3"
}


@pytest.mark.parametrize(
    ("layers", "own", "model", "place", "options", "origins"),
    [
        pytest.param(
            ModelLayers(VARIABLES),
            None,
            "general",
            ("http://general/v1", "OPENAI_API_KEY"),
            {"seed": 3, "max_tokens": 9, "temperature": 0.5},
            ("SPANLAB_MODEL", "OPENAI_BASE_URL"),
            id="environment-alone",
        ),
        pytest.param(
            ModelLayers(VARIABLES | {"SPANLAB_MODEL_JUDGE": "judging"}),
            None,
            "judging",
            ("http://general/v1", "OPENAI_API_KEY"),
            {"seed": 3},
            ("SPANLAB_MODEL_JUDGE", "OPENAI_BASE_URL"),
            id="a-role's-variable",
        ),
        pytest.param(
            ModelLayers(VARIABLES),
            OWN,
            "member",
            ("http://general/v1", "OPENAI_API_KEY"),
            {"seed": 1, "top_p": 1, "max_tokens": 9},
            ("the model's name", "OPENAI_BASE_URL"),
            id="the-specification-s-before-the-environment",
        ),
        pytest.param(
            ModelLayers(VARIABLES | {"LLAMA_URL": "http://llama/v1"}),
            OWN,
            "member",
            ("http://llama/v1", "LLAMA_KEY"),
            {"seed": 1},
            ("the model's name", "LLAMA_URL"),
            id="its-own-endpoint",
        ),
        pytest.param(
            ModelLayers(VARIABLES, model="flag", options={"judge.seed": 5}),
            OWN,
            "flag",
            ("http://general/v1", "OPENAI_API_KEY"),
            {"seed": 5, "top_p": 1},
            ("the model's name", "OPENAI_BASE_URL"),
            id="the-chosen-before-it-with-the-member-s-manner",
        ),
        pytest.param(
            ModelLayers(VARIABLES, model=SET_UP),
            OWN,
            "mine",
            ("http://mine/v1", "MY_KEY"),
            {"seed": 4, "top_p": 1},
            ("the model's name", "the endpoint's address"),
            id="set-up-on-a-page",
        ),
        pytest.param(
            ModelLayers(VARIABLES, model=SET_UP, one_model=False),
            OWN,
            "member",
            ("http://mine/v1", "MY_KEY"),
            {"seed": 1},
            ("the model's name", "the endpoint's address"),
            id="its-endpoint-for-a-member-that-keeps-its-model",
        ),
        pytest.param(
            ModelLayers(VARIABLES, model=SET_UP, one_model=False),
            OWN.model_copy(update={"base_url": "http://fixed/v1"}),
            "member",
            ("http://fixed/v1", "LLAMA_KEY"),
            {"seed": 1},
            ("the model's name", "the endpoint's address"),
            id="not-for-one-that-has-an-address",
        ),
    ],
)
def test_a_model_is_resolved_layer_by_layer_and_says_where_it_comes_from(
    layers: ModelLayers,
    own: ModelChoice | None,
    model: str,
    place: tuple[str, str],
    options: dict[str, object],
    origins: tuple[str, str],
) -> None:
    found = layers.resolve(
        own,
        roles=("judge", "ucsc-kg"),
        addresses=("", "judge"),
        defaults=ModelOptions(temperature=0.5, seed=0),
    )
    assert (found.model, (found.base_url, found.api_key_env)) == (model, place)
    assert {name: getattr(found, name) for name in options} == options
    assert (found.origins.name, found.origins.address) == origins


def test_a_chosen_price_goes_before_the_environment_s() -> None:
    layers = ModelLayers({"SPANLAB_MODEL": "m", "SPANLAB_PRICE": "1,1,1"}, price="3,2,1")
    assert layers.resolve().price == TokenPrice(input=3, cached=2, output=1)


def test_where_a_model_comes_from_is_no_part_of_which_it_is() -> None:
    here = ModelLayers({"SPANLAB_MODEL": "m"}).resolve()
    there = ModelLayers({}, model="m").resolve()
    assert here.origins != there.origins
    assert len({here, there}) == 1
    assert here != ModelLayers({"SPANLAB_MODEL": "m"}, options={"seed": 1}).resolve()
    assert ModelChoice.model_validate_json(here.model_dump_json()).origins == here.origins


@pytest.mark.parametrize(
    "price", ["1,2", "1,2,x", "1,2,-3", "nan,1,1", "inf,1,1", "1,2,3,4"], ids=str
)
def test_a_price_is_three_amounts(price: str) -> None:
    with pytest.raises(UsageError, match="input,cached,output"):
        ModelLayers({"SPANLAB_MODEL": "m", "SPANLAB_PRICE": price}).resolve()


@pytest.mark.parametrize(
    "url",
    ["ftp://host/v1", "localhost:8000", "http://me:secret@host/v1", "http://host/v1?key=secret"],
    ids=["scheme", "no-scheme", "password", "key-in-query"],
)
def test_an_address_is_plain_http_and_its_secrets_are_not_repeated(url: str) -> None:
    with pytest.raises(UsageError, match="OPENAI_BASE_URL") as caught:
        ModelLayers({"SPANLAB_MODEL": "m", "OPENAI_BASE_URL": url}).resolve()
    assert "secret" not in str(caught.value)


def test_the_key_is_no_part_of_a_choice() -> None:
    with pytest.raises(ValidationError):
        ModelChoice.model_validate({"model": "m", "api_key": "sk-1"})


def test_cached_input_tokens_have_their_own_price() -> None:
    price = TokenPrice(input=10, cached=1, output=100)
    # 600 new at 10, 400 cached at 1 and 50 out at 100, per million: 6000 + 400 + 5000 = 11400.
    assert price.of(1000, 400, 50) == pytest.approx(0.0114)


def test_openai_needs_a_key_and_an_endpoint_of_ones_own_does_not() -> None:
    with pytest.raises(MissingKeyError, match="OPENAI_API_KEY"):
        key_of(ModelChoice(model="m"), {})
    assert key_of(ModelChoice(model="m", base_url="http://localhost:1/v1"), {}) == "no-key"
    with pytest.raises(MissingKeyError, match="MY_KEY"):
        key_of(ModelChoice(model="m", api_key_env="MY_KEY"), {"OPENAI_API_KEY": "sk-other"})


def test_every_key_that_was_read_is_taken_out_of_texts() -> None:
    key_of(ModelChoice(model="m"), {"OPENAI_API_KEY": "sk-taken-out"})
    assert redact("Wrong key sk-taken-out!") == "Wrong key [key]!"


def test_tokens_are_estimated_by_script() -> None:
    assert count_tokens("") == 0
    assert count_tokens("abcd" * 10) == 10
    assert count_tokens("法国首都巴黎") == 6


@pytest.mark.parametrize("key", ["SPANLAB_LLAMA_API_KEY", "SPANLAB_LLAMA_KEY"])
def test_headers_are_read_beside_the_key_of_their_endpoint(key: str) -> None:
    environ = {"OPENAI_HEADERS": "X-Title=general", "SPANLAB_LLAMA_HEADERS": "X-Title=own"}
    assert headers_of(ModelChoice(model="m"), environ) == {"X-Title": "general"}
    assert headers_of(ModelChoice(model="m", api_key_env=key), environ) == {"X-Title": "own"}
