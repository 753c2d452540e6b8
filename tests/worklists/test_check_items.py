"""A check item counts for no plan: everybody who is given it gets it, however many have had it."""

from __future__ import annotations

from pathlib import Path

from spanlab.base.settings import Settings
from spanlab.oplog.operations import FinishItem, SentOperation
from spanlab.schema import Annotation, AnnotatorKind, CheckRules, Item, Record
from spanlab.storage import Store
from spanlab.worklists import drawing, plans


def test_a_check_item_that_enough_others_have_finished_is_still_its_persons(tmp_path: Path) -> None:
    gold = Annotation(annotator="gold", kind=AnnotatorKind.GOLD)
    known = CheckRules(labels=("gold",), test_items=1, pass_at=0)
    settings = Settings(home=tmp_path, database_url=f"sqlite:///{tmp_path / 'spanlab.db'}")
    with Store.open(settings) as store:
        store.import_records(
            "d",
            [
                Record(item=Item(id="check", answer="one"), annotations=(gold,)),
                Record(item=Item(id="other", answer="two")),
            ],
        )
        rules = {"overlap": 1, "known": known, "always_blind": True}
        store.change_settings("d", lambda old: old.model_copy(update=rules))
        for person in ("Ada", "Ben"):
            drawing.give_test(store, "d", person, 1, 1)
        for item in ("check", "other"):
            store.apply("d", item, "Ada", [SentOperation(f"Ada {item}", 1, 0, FinishItem())])
        assert plans.reserve(store, "d", "check", "Ben", 1) == ()
        assert plans.reserve(store, "d", "other", "Ben", 1) == ("Ada",)
        assert plans.reserve(store, "d", "check", "Cleo", 1) == ("Ada",)  # who was not given it
