"""What is offered here, at the doors of the app."""

from spanlab.doors import Command, Page, Room

ROOM = Room(
    commands={
        "import": Command("Read files into a dataset.", "import_commands:import_command", 10),
        "formats": Command("List formats and their options.", "import_commands:formats", 15),
        "export": Command("Write a dataset with its annotations.", "commands:export", 120),
        "index": Command(
            "Index a corpus, so that detectors can look things up in it.",
            "import_commands:index",
            150,
        ),
        "datasets": Command(
            "List datasets with their settings and annotators, or change one.",
            "commands:datasets",
            200,
        ),
        "snapshot": Command(
            "Save a dataset as it is now, as a version that never changes.",
            "version_commands:snapshot",
            210,
        ),
        "diff": Command(
            "Show what differs between two datasets or versions.", "version_commands:diff", 220
        ),
        "bin": Command(
            "Deleted datasets: list, restore, delete permanently.", "version_commands:app", 230
        ),
        "backup": Command(
            "Write the database and all tuned prompts into one file.",
            "version_commands:backup",
            240,
        ),
        "restore": Command("Put a backup into a database.", "version_commands:restore", 250),
        "reports": Command(
            "Links to reports, read without a login: create, list, revoke.",
            "report_commands:reports",
            284,
        ),
        "annotators": Command(
            "Annotators of a dataset: rename, merge, remove, mark as gold.", "commands:app", 410
        ),
    },
    pages=(
        Page(
            title="Datasets",
            icon="database",
            needs="MANAGE",
            about="Import answers, and see who has annotated them.",
            topic="formats",
            place="page:page",
            order=20,
        ),
        Page(
            title="Export",
            icon="download",
            needs="EXPORT",
            about="Export labels in the format that you need.",
            topic="formats",
            place="export_page:page",
            order=60,
        ),
    ),
    offers={"options": {"import": "importing:ImportOptions"}},
)
