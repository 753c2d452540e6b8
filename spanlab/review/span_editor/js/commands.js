/** Every command of the key table; keys.py says what each does and by which key. */

import { CLAIM_COMMANDS } from "./claim_commands.js";
import { newId } from "./ids.js";
import { QUESTION_COMMANDS } from "./questions.js";
import { likelyWords, quote } from "./words.js";

const UNREAD = 20; // suggestions: more than these at once nobody has read

export const COMMANDS = {
    nextSpan: (editor, event) => step(editor, 1, event),
    previousSpan: (editor, event) => step(editor, -1, event),
    nextEvidence: (editor) => editor.view.evidence.next(),
    previousEvidence: (editor) => editor.view.evidence.next(-1),
    findEvidence: (editor) => editor.view.evidence.search.open(),
    citedPassage: (editor) => editor.view.citations.next(),
    citingPlace: (editor) => editor.view.citations.back(),
    trace: (editor) => editor.view.trace.toggle(),
    nextTab: (editor) => editor.view.panel.next(),
    nextTrace: (editor) => editor.view.trace.next(),
    accept: (editor) => {
        const mark = editor.focused;
        if (!mark || mark.kind === "own") return editor.view.say("Select a suggestion first.", true);
        const from = mark.start;
        if (!editor.own()) return true;
        editor.toNextOpen(from);
        return editor.view.say(`Accepted ${quote(mark.text)}.`);
    },
    reject: (editor) => reject(editor),
    takeLane: (editor, event, key) => editor.view.lanes.take(Number(key)),
    takeMajority: (editor) => editor.view.lanes.takeMajority(),
    takeUnion: (editor) => editor.view.lanes.takeUnion(),
    takeNone: (editor) => editor.view.lanes.replace([], "Nothing taken"),
    findLane: (editor) => editor.view.lanes.find(),
    nextLanes: (editor) => editor.view.lanes.turn(1),
    previousLanes: (editor) => editor.view.lanes.turn(-1),
    acceptAll: (editor) => {
        const likely = editor.likely();
        if (likely.length === 0) return editor.view.say("No likely suggestions are left.", true);
        const accept = () => {
            editor.view.notice.hide();
            editor.apply({ kind: "accept-all", spans: likely.map(newId), marks: likely.map((piece) => piece.best) });
            editor.view.focusChanged({ scroll: false });
            return editor.view.say(`Accepted ${likelyWords(likely)}.`, true);
        };
        if (likely.length <= UNREAD) return accept();
        const choices = [{ name: "Accept all", key: "a", act: accept }, { name: "Look at them first", key: "Escape", act: () => editor.view.notice.hide() }];
        return editor.view.notice.show(`Accept ${likelyWords(likely)} at once?`, choices, { asks: true });
    },
    parts: (editor) => editor.toggleParts(),
    moreSuggestions: (editor) => editor.view.threshold.move(-1),
    fewerSuggestions: (editor) => editor.view.threshold.move(1),
    remove: (editor) => {
        const mark = editor.focused;
        if (!mark) return editor.view.say("Choose a span first.", true);
        if (mark.kind !== "own") return reject(editor);
        editor.apply({ kind: "remove", span: mark.span });
        const [next] = [...editor.marks.values()].filter((other) => other.end > mark.start);
        editor.focusOn(next?.id ?? null, { scroll: false });
        return editor.view.say(`Removed ${quote(mark.text)}.`);
    },
    label: (editor, event, key) => {
        const label = editor.labels.byKey(key);
        return label ? editor.label(label) : editor.view.say(`There is no label ${key}.`, true);
    },
    findLabel: (editor) => (editor.focused ? editor.labels.search() : editor.view.say("Choose a span first.", true)),
    unlabel: (editor) => editor.label(null),
    comment: (editor) => editor.comment(),
    commentItem: (editor) => editor.commentItem(),
    moveCharacter: (editor, event) => editor.selection.move(aside(editor, event, "grapheme"), false),
    moveWord: (editor, event) => editor.selection.move(aside(editor, event, "word"), false),
    moveLine: (editor, event) => editor.selection.move(editor.view.geometry.lineAway(event.key), false),
    moveEdge: (editor, event) => editor.selection.move(paragraphEdge(editor, event), false),
    selectCharacter: (editor, event) => editor.selection.move(aside(editor, event, "grapheme"), true),
    selectWord: (editor, event) => editor.selection.move(aside(editor, event, "word"), true, true),
    selectLine: (editor, event) => editor.selection.move(editor.view.geometry.lineAway(event.key), true),
    selectEdge: (editor, event) => editor.selection.move(paragraphEdge(editor, event), true),
    selectThisWord: (editor) => selectOneMore(editor, "wordAt"),
    selectThisSentence: (editor) => selectOneMore(editor, "sentenceAt"),
    draw: (editor) => {
        const selected = editor.selection.range;
        if (!selected) return false;
        // a step over a word takes the space before it along; nobody means to mark that
        const trimmed = editor.selection.byWords ? editor.item.text.trimmed(selected.start, selected.end) : null;
        const range = trimmed ?? selected;
        editor.draw(range.start, range.end);
        return editor.view.say(`Marked ${quote(editor.item.text.slice(range.start, range.end))}.`);
    },
    startOut: (editor) => edge(editor, "start", -1, "word"),
    startIn: (editor) => edge(editor, "start", 1, "word"),
    endOut: (editor) => edge(editor, "end", 1, "word"),
    endIn: (editor) => edge(editor, "end", -1, "word"),
    startOutCharacter: (editor) => edge(editor, "start", -1, "grapheme"),
    startInCharacter: (editor) => edge(editor, "start", 1, "grapheme"),
    endOutCharacter: (editor) => edge(editor, "end", 1, "grapheme"),
    endInCharacter: (editor) => edge(editor, "end", -1, "grapheme"),
    done: (editor) => editor.finishing.finish("done"),
    hallucinated: (editor) => editor.finishing.callHallucinated(),
    doneWithAll: (editor) => editor.finishing.finish("done", "all"),
    takeBack: (editor) => editor.view.say("The last Done counted no undecided suggestion.", true), // see notice.js
    skip: (editor) => editor.finishing.finish("skipped"),
    reopen: (editor) => {
        if (editor.item.history.state.status === "not-annotated") return editor.view.say("It is not done yet.");
        editor.apply({ kind: "status", status: "not-annotated" });
        return editor.view.say("Not done any more.");
    },
    nextItem: (editor) => editor.navigation.go(1),
    previousItem: (editor) => editor.navigation.go(-1),
    undo: (editor) => again(editor, "undo", editor.item.history.canUndo, "Undone."),
    redo: (editor) => again(editor, "redo", editor.item.history.canRedo, "Redone."),
    items: (editor) => editor.view.items.show(),
    guidelines: (editor) => editor.view.guidelines.toggle(),
    help: (editor) => editor.view.sheet.toggle(),
    escape: (editor) => editor.view.escape(),
    ...CLAIM_COMMANDS,
    ...QUESTION_COMMANDS,
};

/** Undo or redo, and choose what came back by it. */
function again(editor, kind, possible, done) {
    if (!possible) {
        const back = kind === "undo" && editor.navigation.trail.length > 0 ? " here. PgUp leads back to the item before" : "";
        return editor.view.say(`Nothing to ${kind}${back}.`, true);
    }
    const before = editor.marks;
    editor.apply({ kind });
    const changed = [...editor.marks.keys()].find((id) => !before.has(id));
    if (changed) editor.focusOn(changed);
    else editor.view.focusChanged({ scroll: false });
    return editor.view.say(done);
}

/** Select the word or sentence at the caret; where something is selected, one more. */
function selectOneMore({ item, selection }, which) {
    const { range } = selection;
    const [start, end] = item.text[which](range?.end ?? selection.caret);
    if (!range) selection.caret = start;
    return selection.move(end, true, true);
}

function step(editor, by, event) {
    const marks = [...editor.marks.values()];
    if (marks.length === 0) return event?.key === "Tab" ? false : editor.view.say("No spans here.");
    const index = marks.findIndex((mark) => mark.id === editor.focus);
    let next = index < 0 ? (by > 0 ? nearest(editor, marks) : marks.length - 1) : index + by;
    if (next < 0 || next >= marks.length) {
        if (event?.key === "Tab") return false; // Tab leaves the editor behind the last span
        next = (next + marks.length) % marks.length;
    }
    editor.focusOn(marks[next].id);
    return true;
}

function nearest(editor, marks) {
    const index = marks.findIndex((mark) => mark.start >= editor.selection.caret);
    return index < 0 ? 0 : index;
}

function reject(editor) {
    const mark = editor.focused;
    if (!mark || mark.kind === "rejected") return editor.view.say("Select a suggestion first.", true);
    if (mark.kind === "own" && !mark.origin) return COMMANDS.remove(editor);
    const refused = mark.origin ?? mark.best;
    if (mark.kind === "own" && mark.edited) editor.apply({ kind: "remove", span: mark.span });
    editor.apply({ kind: "reject", mark: refused });
    if (mark.edited && mark.comment) editor.apply({ kind: "note-suggestion", mark: refused, text: mark.comment });
    if (!editor.toNextOpen(mark.start)) editor.view.focusChanged({ scroll: false });
    return editor.view.say(`Rejected ${quote(mark.text)}.`);
}

/** Where the caret lands one grapheme or word to the left or right, in the reading direction. */
function aside(editor, event, unit) {
    const { text } = editor.item;
    const forward = (event.key === "ArrowRight") !== editor.view.geometry.isRightToLeft(editor.selection.caret);
    if (unit === "grapheme") return forward ? text.nextGrapheme(editor.selection.caret) : text.previousGrapheme(editor.selection.caret);
    return forward ? text.nextWord(editor.selection.caret) : text.previousWord(editor.selection.caret);
}

function paragraphEdge(editor, event) {
    const paragraph = editor.item.text.paragraphAt(editor.selection.caret);
    return event.key === "Home" ? paragraph.start : paragraph.end;
}

function edge(editor, side, by, unit) {
    const mark = editor.focused;
    if (!mark) return editor.view.say("Choose a span first.", true);
    const { text } = editor.item;
    const move = unit === "word"
        ? (by > 0 ? text.nextWord : text.previousWord)
        : (by > 0 ? text.nextGrapheme : text.previousGrapheme);
    let at = move.call(text, mark[side]);
    if (unit === "word" && side === "start" && by > 0) at = text.nextWordStart(mark.start);
    if (unit === "word" && side === "end" && by < 0) at = text.previousWordEnd(mark.end);
    const start = side === "start" ? at : mark.start;
    const end = side === "end" ? at : mark.end;
    if (start === mark.start && end === mark.end) return editor.view.say("It cannot go further.", true);
    if (!editor.resize(start, end)) return editor.view.say("A span needs at least one character.");
    return editor.view.say(`Now ${quote(text.slice(start, end))}.`);
}
