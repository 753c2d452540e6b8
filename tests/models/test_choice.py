"""Which model, where and at what price, from arguments and environment."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from spanlab.base.errors import MissingKeyError, UsageError
from spanlab.models import ModelChoice, TokenPrice, count_tokens, key_of, redact
from spanlab.models.secrets import headers_of


def test_the_environment_names_model_endpoint_and_price() -> None:
    choice = ModelChoice.read(
        {
            "SPANLAB_MODEL": "llama-3.3-70b",
            "OPENAI_BASE_URL": "http://127.0.0.1:8000/v1/",
            "SPANLAB_PRICE": "0.5, 0.25, 2",
        }
    )
    assert choice.model == "llama-3.3-70b"
    assert choice.endpoint == "http://127.0.0.1:8000/v1"
    assert choice.host == "127.0.0.1:8000"
    assert choice.price == TokenPrice(input=0.5, cached=0.25, output=2)


def test_a_role_has_its_own_model_and_falls_back_to_the_general_one() -> None:
    environ = {"SPANLAB_MODEL": "gpt-4o-mini", "SPANLAB_MODEL_UCSC_REVISE": "o1"}
    assert ModelChoice.read(environ, role="ucsc-revise").model == "o1"
    assert ModelChoice.read(environ, role="ucsc-extract").model == "gpt-4o-mini"


def test_a_named_model_goes_before_the_environment() -> None:
    assert ModelChoice.read({"SPANLAB_MODEL": "a"}, model="b", role="c").model == "b"


def test_without_any_model_the_message_says_how_to_name_one() -> None:
    with pytest.raises(UsageError, match="SPANLAB_MODEL"):
        ModelChoice.read({})


@pytest.mark.parametrize(
    "price", ["1,2", "1,2,x", "1,2,-3", "nan,1,1", "inf,1,1", "1,2,3,4"], ids=str
)
def test_a_price_is_three_amounts(price: str) -> None:
    with pytest.raises(UsageError, match="input,cached,output"):
        ModelChoice.read({"SPANLAB_MODEL": "m", "SPANLAB_PRICE": price})


@pytest.mark.parametrize(
    "url",
    ["ftp://host/v1", "localhost:8000", "http://me:secret@host/v1", "http://host/v1?key=secret"],
    ids=["scheme", "no-scheme", "password", "key-in-query"],
)
def test_an_address_is_plain_http_and_its_secrets_are_not_repeated(url: str) -> None:
    with pytest.raises(UsageError, match="OPENAI_BASE_URL") as caught:
        ModelChoice.read({"SPANLAB_MODEL": "m", "OPENAI_BASE_URL": url})
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
