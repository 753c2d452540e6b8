"""Label Studio's labelling configuration: what a dataset asks, as XML, and back.

    <View>
      <Text name="answer" value="$answer"/>
      <Labels name="label" toName="answer"><Label value="unsupported"/></Labels>
      <Header value="How severe is it?"/>
      <Choices name="severity" toName="answer" perRegion="true" whenLabelValue="unsupported"
               required="true"><Choice value="minor"/><Choice value="major"/></Choices>
      <Rating name="fluency" toName="answer" maxRating="5"/>
    </View>

A scale that does not begin with 1 is a ``Number``. A header gives the control after it its title.
The titles of a scale's ends have no place there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final
from xml.etree import ElementTree as ET

from pydantic import ValidationError

from spanlab.errors import UsageError
from spanlab.schema import DatasetSettings, Question

LABEL = "Hallucination"  # of a span that has none, as Label Studio shows no region without


_CONTROLS: Final = frozenset({"Choices", "Rating", "Number", "TextArea"})


def labeling_config(settings: DatasetSettings, labels: Iterable[str] = ()) -> str:
    """Return the configuration that exported tasks of a dataset are made for, as XML.

    Args:
        settings: those of the dataset.
        labels: others that spans of it have.
    """
    view = ET.Element("View")
    ET.SubElement(view, "Text", name="answer", value="$answer")
    marks = ET.SubElement(view, "Labels", name="label", toName="answer")
    for name in dict.fromkeys((*(label.name for label in settings.labels), *labels, LABEL)):
        ET.SubElement(marks, "Label", value=name)
    for questions, of in ((settings.attributes, {"perRegion": "true"}), (settings.questions, {})):
        for question in questions:
            if question.title:
                ET.SubElement(view, "Header", value=question.title)
            when = {"whenLabelValue": ",".join(question.labels)} if question.labels else {}
            required = {"required": "true"} if question.required else {}
            tag, limits = _control(question)
            head = {"name": question.name, "toName": "answer"}
            control = ET.SubElement(view, tag, {**head, **of, **when, **required, **limits})
            for option in question.options:
                ET.SubElement(control, "Choice", value=option)
    ET.indent(view)
    return ET.tostring(view, encoding="unicode") + "\n"


def asked_in(config: str) -> dict[str, tuple[Question, ...]]:
    """Return what a configuration asks: ``attributes`` of regions, ``questions`` of tasks.

    Raises:
        UsageError: it is no XML, declares entities, or asks what we cannot; says what.
    """
    if "<!" in config.replace("<!--", ""):
        raise UsageError("a labelling configuration declares no document type and no entities")
    try:
        view = ET.fromstring(config)  # noqa: S314 - without declarations nothing grows
    except ET.ParseError as error:
        raise UsageError(f"the labelling configuration is no XML: {error}") from error
    asked: dict[str, list[Question]] = {"attributes": [], "questions": []}
    title = ""
    for element in view.iter():
        if element.tag == "Header":
            title = element.get("value", "")
        elif element.tag in _CONTROLS:
            where = "attributes" if element.get("perRegion") == "true" else "questions"
            asked[where].append(_question(element, title))
            title = ""
    return {where: tuple(questions) for where, questions in asked.items()}


def _control(question: Question) -> tuple[str, Mapping[str, str]]:
    if question.kind == "choice":
        return "Choices", {}
    if question.kind == "text":
        return "TextArea", {}
    if question.low == 1:
        return "Rating", {"maxRating": str(question.high)}
    return "Number", {"min": str(question.low), "max": str(question.high)}


def _question(element: ET.Element, title: str) -> Question:
    name = element.get("name", "")
    if element.tag == "Choices" and element.get("choice", "single").startswith("multiple"):
        raise UsageError(f"{name}: several choices at once are not asked here, only one")
    kinds: dict[str, dict[str, Any]] = {
        "Choices": {"options": tuple(choice.get("value", "") for choice in element.iter("Choice"))},
        "Rating": {"kind": "scale", "high": element.get("maxRating", "5")},
        "Number": {"kind": "scale", "low": element.get("min"), "high": element.get("max")},
        "TextArea": {"kind": "text"},
    }
    when = element.get("whenLabelValue", "")
    try:
        return Question(
            name=name,
            title=title,
            required=element.get("required") == "true",
            labels=tuple(label.strip() for label in when.split(",") if label.strip()),
            **kinds[element.tag],
        )
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(map(str, first["loc"]))
        raise UsageError(f"<{element.tag} name={name!r}>: {field} {first['msg']}") from error
