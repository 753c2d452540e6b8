"""What is offered here, at the doors of the app."""

from spanlab.doors import Page, Room

ROOM = Room(
    pages=(
        Page(
            title="Review",
            icon="edit_note",
            needs="REVIEW",
            about="Go through answers and accept, reject or draw spans.",
            topic="review",
            place="page:page",
            order=10,
        ),
        Page(
            title="Adjudicate",
            icon="gavel",
            needs="ADJUDICATE",
            about="Decide where people differ; the result is gold labels.",
            topic="review",
            place="adjudicate_page:page",
            order=80,
            group="Team",
        ),
    ),
    offers={"widgets": {"unsaved": "span_editor:draw_unsaved"}},
)
