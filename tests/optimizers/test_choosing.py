"""The models of an optimisation are those that people have set up, where they have set them up."""

from __future__ import annotations

import pytest

from optimizers.choosing import SearchOptions, optimisation_of
from optimizers.request import PROMPT_TEMPERATURE
from spanlab.models import ModelChoice, TokenPrice

pytestmark = pytest.mark.system("ucsc")

ENDPOINT = "http://127.0.0.1:9/v1"


@pytest.mark.parametrize(
    ("model", "key", "temperature"),
    [
        pytest.param("writer", "OPENAI_API_KEY", PROMPT_TEMPERATURE, id="name"),
        # A key that was given for a session, without an endpoint: it is for the environment's.
        pytest.param(
            ModelChoice(model="writer", api_key_env="LENT", temperature=0.7), "LENT", 0.7, id="key"
        ),
    ],
)
def test_the_prompt_model_is_asked_where_the_environment_says_and_draws_freely(
    model: str | ModelChoice, key: str, temperature: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", ENDPOINT)
    monkeypatch.setenv("SPANLAB_MODEL_OPTIONS", "temperature=0,seed=1,timeout=30")
    options = SearchOptions(
        detectors=("ucsc-extract",),
        model="task",
        prompt_model=model,
        price="3,2,1",
        model_options={"max_tokens": 99, "top_p": 0.5},
    )
    found = optimisation_of("mine", options).search.prompt_model
    assert found is not None
    assert (found.model, found.base_url, found.api_key_env) == ("writer", ENDPOINT, key)
    assert (found.temperature, found.seed, found.top_p) == (temperature, None, None)
    assert (found.timeout, found.max_tokens) == (30, 99)
    assert found.price == TokenPrice(input=3, cached=2, output=1)
