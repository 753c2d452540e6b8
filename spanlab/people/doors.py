"""What is offered here, at the doors of the app."""

from spanlab.doors import OWN, Command, Page, Room

ROOM = Room(
    commands={
        "roles": Command("What people may do: grant, revoke, list.", "access_commands:roles", 270),
        "keys": Command("Keys of programs: create, list, revoke.", "access_commands:keys", 280),
        "invitations": Command(
            "Links for people without an account: create, list, revoke.",
            "access_commands:invitations",
            283,
        ),
        "people": Command("People who leave: forget a name.", "access_commands:people", 285),
        "log": Command("Show who did what, newest first.", "access_commands:log", 290),
    },
    pages=(
        Page(
            title="Access",
            icon="key",
            needs="MANAGE",
            about="Give people roles, and make keys for programs.",
            topic="team",
            place="access_page:page",
            order=120,
            group=OWN,
        ),
    ),
)
