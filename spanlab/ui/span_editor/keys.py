"""Every key of the span editor: the one table behind the editor, its ``?`` sheet and the docs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal


@dataclass(frozen=True)
class Key:
    """One thing a reviewer can do by key.

    ``keys`` are in the order in which help shows them, written as ``Ctrl+z``, ``Shift+Tab`` or
    the character itself (``?``, ``A``). ``command`` is the name under which the editor knows it.
    ``where`` must the focus be: keys of the answer work in the whole editor but for what the list
    of claims has keys of its own for.
    """

    group: str
    keys: tuple[str, ...]
    command: str
    does: str
    where: Literal["answer", "claims"] = "answer"


KEYS: tuple[Key, ...] = (
    Key("Go through the spans", ("Tab", "j", "n"), "nextSpan", "Next span"),
    Key("Go through the spans", ("Shift+Tab", "k", "p"), "previousSpan", "Previous span"),
    Key("Go through the spans", ("e",), "nextEvidence", "Next piece of evidence of the span"),
    Key("Go through the spans", ("E",), "previousEvidence", "Previous piece of evidence"),
    Key("Go through the spans", ("f", "Ctrl+f"), "findEvidence", "Find words in the evidence"),
    Key("Go through the spans", ("t",), "trace", "Show or hide how a detector came to its spans"),
    Key("Go through the spans", ("T",), "nextTrace", "The same of the next detector"),
    Key("Go through the spans", ("v",), "nextTab", "Next tab: evidence, spans, claims, trace"),
    Key("Go through the spans", ("l",), "claims", "Go to the claims, or back to the answer"),
    Key("Decide", ("a",), "accept", "Accept the suggestion, go to the next open one"),
    Key("Decide", ("x",), "reject", "Reject the suggestion, go to the next open one"),
    Key("Decide", ("A",), "acceptAll", "Accept all likely suggestions"),
    Key("Decide", ("o",), "parts", "Open a suggestion into its parts, or join them again"),
    Key("Decide", ("<", ","), "moreSuggestions", "Show suggestions of lower probability, too"),
    Key("Decide", (">", "."), "fewerSuggestions", "Show only suggestions of higher probability"),
    Key("Decide", ("Delete", "Backspace"), "remove", "Remove your span, or reject a suggestion"),
    Key("Decide", ("1", "2", "3", "4", "5", "6", "7", "8", "9"), "label", "Label the span"),
    Key("Decide", ("L",), "findLabel", "Find a label by its name"),
    Key("Decide", ("0",), "unlabel", "Take the label away"),
    Key("Decide", ("c",), "comment", "Comment on the span or suggestion; decides nothing"),
    Key("Decide", ("C",), "commentItem", "Comment on the whole answer"),
    Key("Draw", ("ArrowLeft", "ArrowRight"), "moveCharacter", "Move the caret by a character"),
    Key("Draw", ("Ctrl+ArrowLeft", "Ctrl+ArrowRight", "Alt+ArrowLeft", "Alt+ArrowRight"),
        "moveWord", "Move the caret by a word"),
    Key("Draw", ("ArrowUp", "ArrowDown"), "moveLine", "Move the caret by a line"),
    Key("Draw", ("Home", "End"), "moveEdge", "Move the caret to the paragraph's start or end"),
    Key("Draw", ("Shift+ArrowLeft", "Shift+ArrowRight"), "selectCharacter",
        "Select by character"),
    Key("Draw", ("Ctrl+Shift+ArrowLeft", "Ctrl+Shift+ArrowRight", "Alt+Shift+ArrowLeft",
                 "Alt+Shift+ArrowRight"), "selectWord", "Select by word"),
    Key("Draw", ("Shift+ArrowUp", "Shift+ArrowDown"), "selectLine", "Select by line"),
    Key("Draw", ("Shift+Home", "Shift+End"), "selectEdge", "Select to the paragraph's edge"),
    Key("Draw", ("w",), "selectThisWord", "Select the word at the caret, then one word more"),
    Key("Draw", ("d", "Enter"), "draw", "Mark what is selected"),
    Key("Resize", ("[",), "startOut", "Move the start back by a word"),
    Key("Resize", ("{",), "startIn", "Move the start on by a word"),
    Key("Resize", ("]",), "endOut", "Move the end on by a word"),
    Key("Resize", ("}",), "endIn", "Move the end back by a word"),
    Key("Resize", ("Alt+[",), "startOutCharacter", "Move the start back by a character"),
    Key("Resize", ("Alt+{",), "startInCharacter", "Move the start on by a character"),
    Key("Resize", ("Alt+]",), "endOutCharacter", "Move the end on by a character"),
    Key("Resize", ("Alt+}",), "endInCharacter", "Move the end back by a character"),
    Key("Items", ("Enter", "Ctrl+Enter"), "done", "Done: checked, go to the next item"),
    Key("Items", ("D", "Alt+Enter"), "doneWithAll", "Done, with all suggestions shown accepted"),
    Key("Items", ("z",), "takeBack", "Take Done back, if it decided suggestions"),
    Key("Items", ("Space", "Ctrl+Space"), "skip", "Skip, go to the next item"),
    Key("Items", ("Shift+Enter",), "reopen", "Not done after all"),
    Key("Items", ("PageDown", "Alt+ArrowDown"), "nextItem", "Next item"),
    Key("Items", ("/",), "items", "Table of items: search, sort, open one"),
    Key("Items", ("PageUp", "Alt+ArrowUp"), "previousItem", "Previous item"),
    Key("In the claims", ("ArrowDown", "j", "n"), "nextClaim", "Next claim", "claims"),
    Key("In the claims", ("ArrowUp", "k", "p"), "previousClaim", "Previous claim", "claims"),
    Key("In the claims", ("a",), "acceptClaim", "Accept the verdict, go to the next open claim",
        "claims"),
    Key("In the claims", ("x",), "rejectClaim", "Reject the verdict, go to the next open claim",
        "claims"),
    Key("In the claims", ("1", "2", "3", "4", "5", "6"), "judgeClaim",
        "Give a verdict of your own, in the order of the buttons", "claims"),
    Key("In the claims", ("c",), "commentClaim", "Say why you give this verdict", "claims"),
    Key("In the claims", ("w",), "writeClaim",
        "Write a claim of your own, about what is selected in the answer", "claims"),
    Key("In the claims", ("r",), "rewordClaim", "Reword a claim that you wrote", "claims"),
    Key("In the claims", ("Delete", "Backspace"), "removeClaim", "Remove your claim", "claims"),
    Key("In the claims", ("t", "Enter"), "claimTrail",
        "Walk the trail of the claim to its sources", "claims"),
    Key("In the claims", ("Escape",), "leaveClaims", "Back to the answer", "claims"),
    Key("Anywhere", ("u", "Ctrl+z"), "undo", "Undo"),
    Key("Anywhere", ("U", "Ctrl+Shift+z", "Ctrl+y"), "redo", "Redo"),
    Key("Anywhere", ("g",), "guidelines", "Show or hide the dataset's guidelines"),
    Key("Anywhere", ("?",), "help", "Show or hide this sheet"),
    Key("Anywhere", ("Escape",), "escape", "Close, cancel, drop the selection; then Tab leaves"),
)  # fmt: skip

_DIGITS = tuple("123456789")
_LANES = (
    Key("Adjudicate", _DIGITS, "takeLane",
        "Take this annotator's spans in place of those there are"),
    Key("Adjudicate", ("m",), "takeMajority", "Take what more than half of the annotators mark"),
    Key("Adjudicate", ("+",), "takeUnion", "Take what anybody marks"),
    Key("Adjudicate", ("-",), "takeNone", "Take nothing: no spans"),
    Key("Adjudicate", (")",), "nextLanes", "Show the next nine annotators"),
    Key("Adjudicate", ("(",), "previousLanes", "Show the nine annotators before"),
    Key("Adjudicate", ("F",), "findLane", "Find an annotator's lane by name"),
    Key("Adjudicate in the claims", _DIGITS, "takeClaimsOf",
        "Take this annotator's claims and verdicts in place of those there are", "claims"),
    Key("Adjudicate in the claims", ("m",), "takeMajorityOfClaims",
        "Take the claims with the verdict that more than half of the annotators give", "claims"),
    Key("Adjudicate in the claims", ("+",), "takeUnionOfClaims",
        "Take everybody's claims, each with its most frequent verdict", "claims"),
    Key("Adjudicate in the claims", ("-",), "takeNoClaims", "Take no claims", "claims"),
)  # fmt: skip

# Digits choose an annotator's lane there; labels and verdicts have Alt before theirs.
ADJUDICATION_KEYS: tuple[Key, ...] = _LANES + tuple(
    replace(key, keys=tuple(f"Alt+{digit}" for digit in key.keys))
    if key.command in {"label", "unlabel", "judgeClaim"}
    else key
    for key in KEYS
)
