"""What is offered here, at the doors of the app."""

from spanlab.doors import Command, Job, Page, Room

ROOM = Room(
    commands={
        "check": Command("Mark what is hallucinated in one answer.", "check_commands:check", 15),
        "annotate": Command(
            "Let detectors mark spans, in a dataset or from file to file.", "commands:annotate", 20
        ),
        "vote": Command("Turn the marks of many annotators into soft labels.", "commands:vote", 40),
        "detectors": Command(
            "List the detectors: what each does and what it needs.",
            "models_commands:detectors",
            160,
        ),
        "tools": Command(
            "Start tool servers, to see which tools they offer.", "models_commands:tools", 170
        ),
        "check-model": Command(
            "Test what a model's endpoint supports.",
            "models_commands:check_model",
            190,
        ),
    },
    pages=(
        Page(
            title="Check",
            icon="fact_check",
            needs="ADMINISTER",
            about="Paste an answer to see which parts of it its passages do not support.",
            topic="quick-start",
            place="check_page:page",
            order=5,
            needs_data=False,
        ),
        Page(
            title="Detect",
            icon="manage_search",
            needs="ADMINISTER",
            about="Let detectors suggest spans; the cost is shown before they start.",
            topic="detectors",
            place="page:page",
            order=30,
        ),
    ),
    jobs={"detect": Job("Detection", "item", "spanlab.detect", "job:same")},
)
