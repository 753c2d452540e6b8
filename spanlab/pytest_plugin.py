"""What pytest has of spanlab: an option, and the spans of answers that are not grounded.

    pytest --spanlab-detector ucsc-extract --junit-xml report.xml

Failures of ``spanlab.testing.assert_grounded`` show their spans, and in JUnit's XML they have the
annotation as the property ``spanlab``, as JSON. Nothing of spanlab is loaded for other tests.
"""

from __future__ import annotations

from collections.abc import Generator

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option."""
    parser.getgroup("spanlab").addoption(
        "--spanlab-detector",
        metavar="NAME",
        help="the detector of assert_grounded where a test names none (default: offline)",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Hand the detector on, and refuse one that is not there before any test runs."""
    if named := config.getoption("spanlab_detector"):
        from spanlab.base.errors import SpanlabError
        from spanlab.detection import spec_of
        from spanlab.testing import grounding

        try:
            spec_of(named)
        except SpanlabError as error:
            raise pytest.UsageError(f"--spanlab-detector: {error}") from None
        grounding.usual = named


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
    call: pytest.CallInfo[None],
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Write the spans of an answer that is not grounded into the report."""
    report = yield
    annotation = getattr(call.excinfo and call.excinfo.value, "spanlab_annotation", None)
    if annotation is not None:
        from spanlab.base.redaction import visible

        lines = []
        for span in annotation.spans:
            said = [span.note, *(f"closest: “{quote.text}”" for quote in span.evidence[:1])]
            place = f"{span.start}-{span.end} {span.text!r} {span.prob:.2f}"
            lines.append(" ".join([place, *filter(None, said)]))
        title = f"spans by {annotation.annotator}"
        report.sections.append((visible(title), visible("\n".join(lines))))
        item.user_properties.append(("spanlab", annotation.model_dump_json()))
    return report
