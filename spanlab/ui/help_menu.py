"""The Help menu: keys, glossary, formats, guidelines and version, each a page to read."""

from __future__ import annotations

from importlib.metadata import version
from itertools import groupby

import streamlit as st

from spanlab.schema import Permission
from spanlab.ui import common
from spanlab.ui.span_editor import KEYS

_GLOSSARY = {
    "Item": "One answer of a language model under review, with its question and its passages.",
    "Span": "Characters of the answer that are hallucinated, or suspected to be.",
    "Suggestion": "A span of a detector, a vote or another person. Accept it, change it or reject "
    "it; what you accept is yours.",
    "Probability": "How certain an annotator is that the span is hallucinated, from 0 to 1.",
    "Label": "The kind of error, such as a wrong date. Each dataset has its own set of labels.",
    "Passage": "A text that came with the answer or was retrieved for it, with title and address.",
    "Evidence": "A quoted part of a passage that supports or refutes a span or a claim.",
    "Claim": "A statement that stands for itself, taken from the answer, with a verdict.",
    "Trace": "What a detector asked, read and decided on its way to its spans.",
    "Annotation": "What one annotator (a person, a detector or a vote) says of one item.",
    "Annotated": "“Not annotated yet”, “done without spans” and “failed” are three different "
    "states, everywhere.",
    "Gold labels": "Annotations that others are measured against.",
    "Vote": "Several annotations as one: each character has the share that marked it.",
    "Soft and hard labels": "The shares of a vote; and the characters that more than half marked.",
    "Blind review": "Annotating without seeing what other people marked. It is the usual way.",
    "IoU": "Characters that two annotations share, divided by those that either has; 1 is equal.",
    "Correlation": "Spearman's rank correlation between the probabilities of two annotations.",
}
_FORMATS = {
    "spanlab JSONL": "One item a line with all annotations, lossless. In and out.",
    "Label Studio": "JSON as Label Studio exports and imports it. In and out.",
    "Mu-SHROOM": "Items with soft and hard labels, as SemEval-2025 Task 3 has them. In and out.",
    "CSV, JSON, JSONL, parquet": "Rows of any shape: on import you say which column is what.",
    "Hugging Face": "Folders of the datasets library; out as JSONL with a dataset card.",
    "Claims as CSV": "One row per claim with its verdict. Out.",
    "HTML report": "Highlights, evidence and scores in one file to mail or print. Out.",
}


def pages() -> list[st.Page]:
    """Return the pages of the menu."""
    return [
        st.Page(_keys, title="Keyboard shortcuts", icon=":material/keyboard:", url_path="keys"),
        st.Page(_glossary, title="Glossary", icon=":material/dictionary:", url_path="glossary"),
        st.Page(_formats, title="Formats", icon=":material/description:", url_path="formats"),
        st.Page(_guidelines, title="Guidelines", icon=":material/rule:", url_path="guidelines"),
        st.Page(_version, title="Version", icon=":material/info:", url_path="version"),
    ]


def _keys() -> None:
    common.title("Keyboard shortcuts")
    st.markdown("These keys work in Review, while the focus is in the editor.")
    for group, keys in groupby(KEYS, lambda key: key.group):
        st.subheader(group, anchor=False)
        rows = {common.plain(" or ".join(key.keys)): key.does for key in keys}
        st.table(rows, border="horizontal")


def _glossary() -> None:
    common.title("Glossary")
    st.table(_GLOSSARY, border="horizontal")


def _formats() -> None:
    common.title("Formats")
    st.markdown("Import files on the Datasets page; the Export page writes them.")
    st.table(_FORMATS, border="horizontal")


def _guidelines() -> None:
    common.title("Guidelines")
    summaries = common.datasets_for("read guidelines of", Permission.SEE)
    if not summaries:
        return
    summary = common.choose_dataset(summaries)
    texts = summary.settings.guidelines
    if not texts:
        st.info("This dataset has no guidelines. Write them in its settings on the Datasets page.")
        common.page_link("datasets", "Go to Datasets", icon=":material/database:")
        return
    st.caption(f"Version {len(texts)}")
    with st.container(border=True):
        st.markdown(texts[-1])


def _version() -> None:
    common.title("Version")
    st.markdown(f"spanlab {version('spanlab')}")
    st.markdown("`spanlab --help` lists the commands; the README tells of each with an example.")
