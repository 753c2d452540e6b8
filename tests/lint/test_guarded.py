"""What pages and services call acts for somebody: each call carries a store or an actor."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

PACKAGE = Path(__file__).parents[2] / "spanlab"
# The rooms whose functions read and change what is stored; their pages are among those who ask.
ASKED = (
    *("bench", "data", "detection", "jobs", "measure", "memory", "people", "review", "scoring"),
    *("campaigns", "worklists", "storage.datasets", "cli.servers"),
)
SERVICES = "integrations"
DRAWS = re.compile(r"(^|_)(page|panel|form)$")  # modules that draw: what they call is looked at
# Functions that get neither, and are nobody's concern: they compute from what they are given, or
# say how the server is set up. Whatever reads or changes something stored is not among them, but
# `learn_if_due`, which does what a lead has set for the dataset, whoever opens it.
HARMLESS = """
    metrics_of optimisation_of tunable tunable_members progress_in_words state_in_words
    described summary_of has_login invitation_page log_table login_secrets role_table state_of
    token_table token_line is_valid
    agreement_over_time agreement_table day_table label_shares label_table pace pace_table
    verdict_table item_scores calibration_table claim_measures claim_table language_table pair_table
    answer_table score_table default_annotators error_tables judges read_table check_reviewer
    colour_of last_checks model_environment server_names session_model ask_servers
    usual_concurrency is_ensemble model_fields models_of remarks_on specifications allowed_hosts
    estimate_items typical_cost in_folders save_upload unpack_contexts
    preview_import detection_of_samples rejects_as_jsonl model_field certificate_html
    parse_certificate corrected_table history_table held_out_table held_out_in_brief
    mark_html marked_html
    check_adjudicator log_json take_over_logs revision_pieces suggestions trails fetched_checkpoints
    plan_in_words usage_in_words start_embedded_worker guide_page guide_pages
    fit_in_words fit_state fit_tables reviews_of learners learns learn_if_due
    next_step checklist reminders make_plan people_table without_method add_measurement
    search_guide in_days test_in_words remind_table responses_in_words describe_fields
    questions_left_out
    suggestions_in_words more_table holds_api_key has_provider failed_login_page leaving_page
    describe_undoing_gold blind_in_words compared_in_words
    usual_labels check_claims gold_name sweep_copies fragment_html reference_of score_finding
    agreement_finding claim_finding progress_finding build asks_models entries entry_of options_of
    reliability_table shown_rate clustered score_item
    answer_item file_passage find_local_servers list_models presets quote_html typed_passages
""".split()  # noqa: SIM905 - a hundred names
# Where a store is opened for its owner: to be bound to who is there, or to know who that is.
OPENS = {
    ("ui/common.py", "_store"),
    ("app/login.py", "__init__"),  # whose login ends
    ("app/guard.py", "login_options"),
    ("app/guard.py", "guards"),  # who sends a request for a file
    ("app/guard.py", "serve"),  # the link of the owner
}


COMMANDS = ("app/serving.py", "app/guide_command.py")  # which the owner runs


def sources() -> Iterator[tuple[str, ast.Module]]:
    served = ("http_api", "mcp_server", "api_jobs", "gate", "offers", "traces")
    files = [*PACKAGE.glob("**/*.py"), *(PACKAGE.parent / "optimizers").glob("*.py")]
    for path in sorted(files):
        place = str(path.relative_to(PACKAGE.parent)).removeprefix("spanlab/")
        is_served = place in {f"{SERVICES}/{name}.py" for name in served}
        is_page = place.startswith(("ui/", "app/", "review/span_editor/")) and place not in COMMANDS
        if is_served or is_page or DRAWS.search(path.stem):
            yield place, ast.parse(path.read_text(encoding="utf-8"))


def is_asked(module: str) -> bool:
    """Whether a module's functions are looked at: those of ``ASKED`` that do not draw."""
    name = module.removeprefix("spanlab.")
    of_room = name.startswith("optimizers") or any(
        name == room or name.startswith(f"{room}.") for room in ASKED
    )
    draws = DRAWS.search(name.rpartition(".")[2]) or name.startswith("review.span_editor")
    return of_room and not draws


def imported(tree: ast.Module) -> dict[str, Any]:
    """What a module has from the rooms that it asks, by the name that it has there."""
    found: dict[str, Any] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and is_asked(node.module or ""):
            module = importlib.import_module(node.module or "")
            for each in node.names:
                if not hasattr(module, each.name):
                    importlib.import_module(f"{node.module}.{each.name}")
                found[each.asname or each.name] = getattr(module, each.name)
    return found


def functions(known: dict[str, Any], tree: ast.Module) -> Iterator[Callable[..., Any]]:
    for name, what in known.items():
        if inspect.isfunction(what):
            yield what
        elif inspect.ismodule(what):
            used = {
                node.attr
                for node in ast.walk(tree)
                if isinstance(node, ast.Attribute)
                and isinstance(node.value, ast.Name)
                and node.value.id == name
            }
            found = (getattr(what, each) for each in used)
            yield from (each for each in found if inspect.isfunction(each))


def carries(function: Callable[..., Any]) -> set[str]:
    return {"store", "actor"} & inspect.signature(function).parameters.keys()


def test_what_pages_and_services_call_is_guarded_or_harmless() -> None:
    looked_at = 0
    for path, tree in sources():
        for function in functions(imported(tree), tree):
            if not is_asked(function.__module__):
                continue
            looked_at += 1
            name = function.__name__
            if name == "open_store":
                continue
            is_guarded = bool(carries(function))
            assert is_guarded or name in HARMLESS, f"{path}: {function.__module__}.{name}"
    assert looked_at > 150  # of all pages and services: none is looked at in vain


def test_every_call_says_who_asks() -> None:
    """An actor that is left out would be the owner."""
    for path, tree in sources():
        known = imported(tree)
        for node in ast.walk(tree):
            if not isinstance(node, ast.Call):
                continue
            called = node.func
            function: Any = None
            if isinstance(called, ast.Attribute) and isinstance(called.value, ast.Name):
                function = getattr(known.get(called.value.id), called.attr, None)
            elif isinstance(called, ast.Name):
                function = known.get(called.id)
            # `Jobs` is a class: its methods act for whom it was made for.
            asks = inspect.isfunction(function) or inspect.isclass(function)
            if asks and "actor" in carries(function):
                first = next(iter(inspect.signature(function).parameters))
                given = {each.arg for each in node.keywords} | ({first} if node.args else set())
                assert path.startswith(SERVICES) or "actor" in given, (
                    f"{path}:{node.lineno}: {ast.unparse(node)}"
                )


def test_a_store_is_opened_for_the_owner_nowhere_else() -> None:
    opened = {
        (path, function.name)
        for path, tree in sources()
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef)
        for node in ast.walk(function)
        if (isinstance(node, ast.Name) and node.id == "open_store")
        or (isinstance(node, ast.Attribute) and ast.unparse(node) == "Store.open")
    }
    routes = ("routes", "report_routes", "accept", "__init__")
    assert opened <= OPENS | {("app/visitor.py", name) for name in routes}
