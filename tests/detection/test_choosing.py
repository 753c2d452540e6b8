"""What somebody fills in for a run, and the request it makes."""

from __future__ import annotations

from pathlib import Path

import pytest

from spanlab.base.errors import UsageError
from spanlab.detection import DetectorSpec, EnsembleSpec
from spanlab.detection.models import SEARCH_KEY, model_environment
from spanlab.detection.request import RunOptions, request_with_options
from spanlab.detection.selection import is_ensemble
from spanlab.detection.specifications import models_of
from spanlab.models import TokenPrice
from spanlab.schema import Annotation, AnnotatorKind, Item, Record, Status
from spanlab.schema.usage import Budget
from spanlab.search.source import PassageSource
from spanlab.search.spec import Bm25Spec, WebSpec
from spanlab.storage import Store

pytestmark = pytest.mark.system("ucsc")

HERE = {"SPANLAB_MODEL": "small", "OPENAI_BASE_URL": "http://127.0.0.1:9/v1"}


@pytest.fixture
def store(store: Store) -> Store:
    failed = Annotation(
        annotator="ucsc-extract",
        kind=AnnotatorKind.DETECTOR,
        status=Status.FAILED,
        note="no answer",
    )
    store.import_records(
        "set",
        [
            Record(item=Item(id="a", answer="one")),
            Record(item=Item(id="b", answer="two"), annotations=(failed,)),
        ],
    )
    return store


def detector(store: Store, form: RunOptions) -> DetectorSpec:
    (spec,) = request_with_options(store, "set", form, HERE).detectors
    assert isinstance(spec, DetectorSpec)
    return spec


def test_an_ensemble_names_the_models_of_its_members() -> None:
    assert is_ensemble("ucsc")
    assert not is_ensemble("ucsc-extract")
    assert "gpt-4o" in models_of("ucsc")


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        pytest.param("", "https://api.openai.com/v1", id="none"),
        pytest.param("http://host:81/v1/", "http://host:81/v1", id="plain"),
        pytest.param("https://me:secret@host/v1?key=secret", "https://host/v1", id="secrets"),
    ],
)
def test_an_endpoint_is_shown_without_what_may_be_secret(url: str, shown: str) -> None:
    here = model_environment({"OPENAI_BASE_URL": url, "OPENAI_API_KEY": "secret"})
    assert here.endpoint == shown
    assert "secret" not in repr(here)
    assert here.has_key


def test_without_key_and_endpoint_it_says_what_to_set() -> None:
    problem = model_environment({}).problem
    assert problem is not None
    assert "OPENAI_API_KEY" in problem
    assert "OPENAI_BASE_URL" in problem
    assert model_environment(HERE).problem is None


@pytest.mark.system("offline")
def test_a_wish_becomes_a_request(store: Store) -> None:
    form = RunOptions(
        detectors=("offline", "ucsc-extract"),
        model=" large ",
        price="1,0.5,2",
        passages=PassageSource(kind="bm25", claims=True, translate=True, corpus="/tmp/index", k=3),
        concurrency=4,
        limit=9,
        vote="both",
        budget=Budget(calls=7),
    )
    request = request_with_options(store, "set", form, HERE)
    offline, extract = request.specs
    assert offline == DetectorSpec(detector="offline")
    assert extract.model is not None
    assert (extract.model.model, extract.model.base_url) == ("large", "http://127.0.0.1:9/v1")
    assert extract.model.price == TokenPrice(input=1, cached=0.5, output=2)
    retriever = extract.retriever
    assert isinstance(retriever, Bm25Spec)
    assert (retriever.kind, retriever.queries, retriever.translate) == ("bm25", "claims", True)
    assert (retriever.corpus, retriever.k) == (Path("/tmp/index"), 3)
    assert retriever.writer is not None
    assert retriever.writer.model == "large"
    assert (request.concurrency, request.limit, request.vote) == (4, 9, "both")
    assert request.budget == Budget(calls=7)


def test_the_model_of_the_environment_serves_where_none_is_filled_in(store: Store) -> None:
    spec = detector(store, RunOptions(detectors=("ucsc-revise",)))
    assert spec.model is not None
    assert spec.model.model == "small"
    assert spec.retriever is None


def test_members_keep_their_models_unless_one_is_to_serve_all(store: Store) -> None:
    own, one = (
        request_with_options(
            store, "set", RunOptions(detectors=("ucsc",), model="local", one_model=same), HERE
        ).detectors[0]
        for same in (False, True)
    )
    assert isinstance(own, EnsembleSpec)
    assert isinstance(one, EnsembleSpec)
    models = [member.model for member in own.members]
    assert "o1" in {model.model for model in models if model}
    assert {model.base_url for model in models if model} == {"http://127.0.0.1:9/v1"}
    assert {member.model.model for member in one.members if member.model} == {"local"}
    assert [m.signs for m in one.members] == [m.signs for m in own.members]
    assert one.members[0].model is not None
    assert one.members[0].model.temperature == 0.2


def test_a_search_model_has_an_endpoint_and_a_key_of_its_own(store: Store) -> None:
    form = RunOptions(
        detectors=("ucsc-extract",), passages=PassageSource(kind="web", model="other-search")
    )
    retriever = detector(store, form).retriever
    assert isinstance(retriever, WebSpec)
    assert retriever.model is not None
    assert retriever.model.model == "other-search"
    assert retriever.model.base_url != HERE["OPENAI_BASE_URL"]
    assert retriever.model.api_key_env == SEARCH_KEY
    assert model_environment({"SPANLAB_SEARCH_API_KEY": "secret"}).has_search_key


def test_only_failed_items_are_named(store: Store) -> None:
    form = RunOptions(detectors=("ucsc-extract",), only_failed=True)
    assert request_with_options(store, "set", form, HERE).items == ("b",)
    with pytest.raises(UsageError, match="none of these detectors failed"):
        request_with_options(
            store, "set", RunOptions(detectors=("ucsc-revise",), only_failed=True), HERE
        )


@pytest.mark.parametrize(
    ("form", "environ", "says"),
    [
        pytest.param(RunOptions(), HERE, "choose at least one", id="no detector"),
        pytest.param(RunOptions(detectors=("ucsc-kg",)), {}, "no language model", id="no model"),
        pytest.param(RunOptions(detectors=("ucsc-kg",), price="x"), HERE, "price", id="price"),
        pytest.param(
            RunOptions(detectors=("ucsc-kg",), passages=PassageSource(kind="bm25")),
            HERE,
            "name the index",
            id="no index",
        ),
        pytest.param(
            RunOptions(
                detectors=("ucsc-kg",),
                passages=PassageSource(kind="bm25", corpus="i", url="http://s"),
            ),
            HERE,
            "passages from bm25: an address .--search-url. needs another source",
            id="a search address beside a corpus",
        ),
        pytest.param(
            RunOptions(
                detectors=("ucsc-kg",),
                passages=PassageSource(kind="searxng", corpus="i", url="http://s"),
            ),
            HERE,
            "passages from searxng: a corpus .--corpus. needs another source",
            id="a corpus beside a search address",
        ),
        pytest.param(
            RunOptions(detectors=("offline",), vote="offline"),
            HERE,
            "offline",
            id="vote's name",
        ),
    ],
)
def test_what_cannot_be_meant_so_is_said(
    store: Store, form: RunOptions, environ: dict[str, str], says: str
) -> None:
    with pytest.raises(UsageError, match=says):
        request_with_options(store, "set", form, environ)
