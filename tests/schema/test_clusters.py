"""Which answers have something in common, and so are no independent observations."""

from __future__ import annotations

from spanlab.schema import Item, Passage, related


def _item(number: int, question: str, answer: str = "", *passages: str) -> Item:
    return Item(
        id=str(number),
        question=question,
        answer=answer or f"answer {number}",
        passages=[Passage(text=text) for text in passages],
    )


def test_related_answers_are_one_cluster_also_by_way_of_a_third() -> None:
    items = [
        _item(0, "Who?", "", "a"),
        _item(1, "When?", "", "b"),
        _item(2, "who ?".replace(" ", ""), "", "b"),
        _item(3, "Why?", "same"),
        _item(4, "Where?", " Same ", "c"),
        *(_item(number, f"q{number}", "", f"p{number}") for number in range(5, 12)),
    ]
    found = related(items)
    assert len({found[0], found[1], found[2]}) == 1
    assert found[3] == found[4] != found[0]
    assert len(set(found)) == 2 + 7
    backwards = related(items[::-1])
    assert len(set(backwards)) == 2 + 7


def test_what_most_answers_have_is_an_instruction_a_stock_reply_or_all_that_is_known() -> None:
    summaries = [_item(number, "Summarise.", "", f"text {number}") for number in range(10)]
    assert len(set(related(summaries))) == 10
    replies = [_item(number, f"q{number}", "Yes.") for number in range(10)]
    assert len(set(related(replies))) == 10
    helpdesk = [_item(number, f"q{number}", "", "the manual") for number in range(10)]
    assert len(set(related(helpdesk))) == 10


def test_a_stock_reply_relates_nothing_also_where_each_question_is_asked_four_times() -> None:
    """Its 40 answers to ten questions are ten clusters, not one."""
    replies = [_item(number, f"q{number % 10}", "Yes.") for number in range(40)]
    assert len(set(related(replies))) == 10
    manual = [_item(number, f"q{number % 10}", "", "the manual") for number in range(40)]
    assert len(set(related(manual))) == 10


def test_few_questions_with_many_answers_stay_clusters() -> None:
    runs = [_item(number, f"q{number % 3}") for number in range(30)]
    assert len(set(related(runs))) == 3
    documents = [_item(number, "", "", f"text {number % 3}") for number in range(30)]
    assert len(set(related(documents))) == 3
