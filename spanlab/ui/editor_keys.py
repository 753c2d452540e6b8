"""Every key of the span editor: the one table behind the editor, its ``?`` sheet and the docs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final, Literal


@dataclass(frozen=True)
class EditorKey:
    """One thing a reviewer can do by key.

    ``keys`` are in the order in which help shows them, written as ``Ctrl+z``, ``Shift+Tab`` or
    the character itself (``?``, ``A``). ``command`` is the name under which the editor knows it.
    ``where`` must the focus be: keys of the answer work in the whole editor but for what the list
    of claims and the questions have keys of their own for.
    """

    group: str
    keys: tuple[str, ...]
    command: str
    does: str
    where: Literal["answer", "claims", "questions"] = "answer"


_DIGITS = tuple("123456789")

KEYS: tuple[EditorKey, ...] = (
    EditorKey("Go through the spans", ("Tab", "j", "n"), "nextSpan", "Next span"),
    EditorKey("Go through the spans", ("Shift+Tab", "k", "p"), "previousSpan", "Previous span"),
    EditorKey("Go through the spans", ("e",), "nextEvidence", "Next piece of evidence of the span"),
    EditorKey("Go through the spans", ("E",), "previousEvidence", "Previous piece of evidence"),
    EditorKey("Go through the spans", ("f", "Ctrl+f"), "findEvidence",
        "Find words in the evidence"),
    EditorKey("Go through the spans", ("s",), "citedPassage",
        "Open the passage that is cited here; again: the next one"),
    EditorKey("Go through the spans", ("S",), "citingPlace",
        "From that passage, go to the next place that cites it"),
    EditorKey("Go through the spans", ("t",), "trace",
        "Show or hide a detector's trace"),
    EditorKey("Go through the spans", ("T",), "nextTrace", "Next detector's trace"),
    EditorKey("Go through the spans", ("v",), "nextTab",
        "Next tab: evidence, spans, claims, questions, trace"),
    EditorKey("Go through the spans", ("l",), "claims", "Go to the claims, or back to the answer"),
    EditorKey("Decide", ("a",), "accept", "Accept the suggestion, go to the next open one"),
    EditorKey("Decide", ("x",), "reject", "Reject the suggestion, go to the next open one"),
    EditorKey("Decide", ("A",), "acceptAll", "Accept all likely suggestions"),
    EditorKey("Decide", ("o",), "parts", "Split a suggestion into its parts, or rejoin them"),
    EditorKey("Decide", ("<", ","), "moreSuggestions",
        "Show suggestions of lower probability, too"),
    EditorKey("Decide", (">", "."), "fewerSuggestions",
        "Show only suggestions of higher probability"),
    EditorKey("Decide", ("Delete", "Backspace"), "remove",
        "Remove your span, or reject a suggestion"),
    EditorKey("Decide", ("1", "2", "3", "4", "5", "6", "7", "8", "9"), "label", "Label the span"),
    EditorKey("Decide", ("L",), "findLabel", "Find a label by its name"),
    EditorKey("Decide", ("0",), "unlabel", "Take the label away"),
    EditorKey("Decide", ("c",), "comment", "Comment on the span or suggestion; decides nothing"),
    EditorKey("Decide", ("C",), "commentItem", "Comment on the whole answer"),
    EditorKey("Draw", ("ArrowLeft", "ArrowRight"), "moveCharacter",
        "Move the caret by a character"),
    EditorKey("Draw", ("Ctrl+ArrowLeft", "Ctrl+ArrowRight", "Alt+ArrowLeft", "Alt+ArrowRight"),
        "moveWord", "Move the caret by a word"),
    EditorKey("Draw", ("ArrowUp", "ArrowDown"), "moveLine", "Move the caret by a line"),
    EditorKey("Draw", ("Home", "End"), "moveEdge",
        "Move the caret to the paragraph's start or end"),
    EditorKey("Draw", ("Shift+ArrowLeft", "Shift+ArrowRight"), "selectCharacter",
        "Select by character"),
    EditorKey("Draw", ("Ctrl+Shift+ArrowLeft", "Ctrl+Shift+ArrowRight", "Alt+Shift+ArrowLeft",
                 "Alt+Shift+ArrowRight"), "selectWord", "Select by word"),
    EditorKey("Draw", ("Shift+ArrowUp", "Shift+ArrowDown"), "selectLine", "Select by line"),
    EditorKey("Draw", ("Shift+Home", "Shift+End"), "selectEdge", "Select to the paragraph's edge"),
    EditorKey("Draw", ("w",), "selectThisWord", "Select the word at the caret, then one word more"),
    EditorKey("Draw", ("W",), "selectThisSentence", "Select the sentence, then one more"),
    EditorKey("Draw", ("d", "Enter"), "draw", "Mark what is selected"),
    EditorKey("Resize", ("[",), "startOut", "Move the start back by a word"),
    EditorKey("Resize", ("{",), "startIn", "Move the start on by a word"),
    EditorKey("Resize", ("]",), "endOut", "Move the end on by a word"),
    EditorKey("Resize", ("}",), "endIn", "Move the end back by a word"),
    EditorKey("Resize", ("Alt+[",), "startOutCharacter", "Move the start back by a character"),
    EditorKey("Resize", ("Alt+{",), "startInCharacter", "Move the start on by a character"),
    EditorKey("Resize", ("Alt+]",), "endOutCharacter", "Move the end on by a character"),
    EditorKey("Resize", ("Alt+}",), "endInCharacter", "Move the end back by a character"),
    EditorKey("Items", ("Enter", "Ctrl+Enter"), "done", "Done: checked, go to the next item"),
    EditorKey("Items", ("D", "Alt+Enter"), "doneWithAll",
        "Accept all visible suggestions and finish"),
    EditorKey("Items", ("h",), "hallucinated",
        "Done: the answer is hallucinated, its place is not marked"),
    EditorKey("Items", ("z",), "takeBack", "Undo Done, if it decided suggestions"),
    EditorKey("Items", ("Space", "Ctrl+Space"), "skip", "Skip, go to the next item"),
    EditorKey("Items", ("Shift+Enter",), "reopen", "Mark as not done"),
    EditorKey("Items", ("PageDown", "Alt+ArrowDown"), "nextItem", "Next item"),
    EditorKey("Items", ("/",), "items", "Table of items: search, sort, open one"),
    EditorKey("Items", ("PageUp", "Alt+ArrowUp"), "previousItem", "Previous item"),
    EditorKey("In the claims", ("ArrowDown", "j", "n"), "nextClaim", "Next claim", where="claims"),
    EditorKey("In the claims", ("ArrowUp", "k", "p"), "previousClaim", "Previous claim",
        where="claims"),
    EditorKey("In the claims", ("a",), "acceptClaim",
        "Accept the verdict, go to the next open claim",
        where="claims"),
    EditorKey("In the claims", ("x",), "rejectClaim",
        "Reject the verdict, go to the next open claim",
        where="claims"),
    EditorKey("In the claims", ("1", "2", "3", "4", "5", "6"), "judgeClaim",
        "Give a verdict of your own, in the order of the buttons", where="claims"),
    EditorKey("In the claims", ("c",), "commentClaim", "Say why you give this verdict",
        where="claims"),
    EditorKey("In the claims", ("w",), "writeClaim",
        "Write a claim of your own, about what is selected in the answer", where="claims"),
    EditorKey("In the claims", ("r",), "rewordClaim", "Reword a claim that you wrote",
        where="claims"),
    EditorKey("In the claims", ("Delete", "Backspace"), "removeClaim",
        "Remove your claim", where="claims"),
    EditorKey("In the claims", ("t", "Enter"), "claimTrail",
        "Walk the trail of the claim to its sources", where="claims"),
    EditorKey("In the claims", ("Escape",), "leaveClaims", "Back to the answer", where="claims"),
    EditorKey("Questions", ("q",), "attributes",
        "Go to the span's questions, or back to the answer"),
    EditorKey("Questions", ("Q",), "questions",
        "Go to what is asked of the whole answer, or back to it"),
    EditorKey("In the questions", ("ArrowDown", "j", "n"), "nextQuestion",
        "Next question", where="questions"),
    EditorKey("In the questions", ("ArrowUp", "k", "p"), "previousQuestion",
        "Previous question", where="questions"),
    EditorKey("In the questions", ("0", *_DIGITS), "respond",
        "Take this value of a scale, or this option; go to the next question", where="questions"),
    EditorKey("In the questions", ("Enter", "Space"), "findResponse",
        "Write a text, or find an option by its name", where="questions"),
    EditorKey("In the questions", ("Delete", "Backspace"), "clearResponse",
        "Take the response away", where="questions"),
    EditorKey("In the questions", ("Escape",), "leaveQuestions", "Back to the answer",
        where="questions"),
    EditorKey("Anywhere", ("u", "Ctrl+z"), "undo", "Undo"),
    EditorKey("Anywhere", ("U", "Ctrl+Shift+z", "Ctrl+y"), "redo", "Redo"),
    EditorKey("Anywhere", ("g",), "guidelines", "Show or hide the dataset's guidelines"),
    EditorKey("Anywhere", ("?",), "help", "Show or hide this sheet"),
    EditorKey("Anywhere", ("Escape",), "escape",
        "Close, cancel, clear the selection; then Tab leaves"),
)  # fmt: skip

_LANES = (
    EditorKey("Adjudicate", _DIGITS, "takeLane",
        "Take this annotator's spans in place of those there are"),
    EditorKey("Adjudicate", ("m",), "takeMajority",
        "Take what more than half of the annotators mark"),
    EditorKey("Adjudicate", ("+",), "takeUnion", "Take what anybody marks"),
    EditorKey("Adjudicate", ("-",), "takeNone", "Take nothing: no spans"),
    EditorKey("Adjudicate", (")",), "nextLanes", "Show the next nine annotators"),
    EditorKey("Adjudicate", ("(",), "previousLanes", "Show the nine annotators before"),
    EditorKey("Adjudicate", ("F",), "findLane", "Find an annotator's lane by name"),
    EditorKey("Adjudicate in the claims", _DIGITS, "takeClaimsOf",
        "Take this annotator's claims and verdicts in place of those there are", where="claims"),
    EditorKey("Adjudicate in the claims", ("m",), "takeMajorityOfClaims",
        "Take the claims with the verdict that more than half of the annotators give",
        where="claims"),
    EditorKey("Adjudicate in the claims", ("+",), "takeUnionOfClaims",
        "Take everybody's claims, each with its most frequent verdict", where="claims"),
    EditorKey("Adjudicate in the claims", ("-",), "takeNoClaims", "Take no claims", where="claims"),
)  # fmt: skip

# Digits choose an annotator's lane there; labels and verdicts have Alt before theirs.
ADJUDICATION_KEYS: tuple[EditorKey, ...] = _LANES + tuple(
    replace(key, keys=tuple(f"Alt+{digit}" for digit in key.keys))
    if key.command in {"label", "unlabel", "judgeClaim"}
    else key
    for key in KEYS
)


# Of labels without a colour of their own, by their places; the colour-blind tell them apart, too.
PALETTE: Final = ("#aa3377", "#228833", "#3399cc", "#bb9900", "#ee6677", "#4477aa", "#888888")
