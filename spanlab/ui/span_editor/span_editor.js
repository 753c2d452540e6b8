/**
 * The span editor: shows one item, lets a reviewer decide by key or mouse, loses nothing typed.
 *
 * Top-down: mount, Editor (what the person does), View (what the person sees), Outbox (what
 * Python is told), History (the operation log, the mirror of spanlab/oplog.py), Text (offsets,
 * paragraphs, words). Behind it comes trace.js, in the same module: what a detector did. Stored offsets are code points; in here all are UTF-16 units, and
 * Text.unit / Text.point are the only bridge. An answer is hostile: text reaches the page as
 * text nodes alone.
 */

/** Mount the editor, or give a mounted one its new surroundings. Called by Streamlit. */
export default function mount(component) {
    const { parentElement, data } = component;
    const wire = (globalThis.spanlab ??= {});
    let editor = mounted.get(parentElement);
    if (!editor) {
        editor = new Editor(parentElement, data, wire);
        mounted.set(parentElement, editor);
        wire.editor = editor;
        wire.receive = (answered) => editor.receive(answered);
        if (wire.component) editor.receive(wire.component);
    }
    editor.labels = data.labels;
    editor.view.theme(parentElement);
    return () => {
        mounted.delete(parentElement);
        editor.unmount();
    };
}

const mounted = new WeakMap();

// ---------------------------------------------------------------------------------- Editor

/** What a person can do, and the state they do it to. */
class Editor {
    constructor(parent, data, wire) {
        this.wire = wire;
        this.labels = data.labels;
        this.keys = data.keys;
        this.bindings = bindings(data.keys);
        this.outbox = wire.outbox ??= new Outbox();
        this.outbox.onChange = () => this.view.saved(this.outbox);
        this.outbox.exchange = () => this.exchange();
        this.items = new Map();
        this.trail = [];
        this.near = new Map();
        this.shown = new Map(Object.entries(remembered()));
        this.place = null;
        this.open = null;
        this.opening = null;
        this.item = null;
        this.mine = null;
        this.unchecked = false;
        this.stashed = null;
        this.told = null; // the item that Python was last told of
        this.known = null; // the item that Python last answered with
        this.view = new View(parent, this);
        this.timer = setInterval(() => this.outbox.retry(), RETRY_EVERY);
    }

    unmount() {
        clearInterval(this.timer);
        this.view.unmount();
        if (this.wire.editor === this) {
            this.wire.left = this.place && {
                queue: queueOf(this.place), item: this.opening ?? this.open, python: [this.told, this.known],
            };
            this.wire.receive = null;
            this.wire.editor = null;
            this.wire.component = null;
        }
    }

    // -- the conversation with Python

    /** Tell Python everything it does not know yet. */
    exchange() {
        const sent = {
            writes: this.outbox.toSend(),
            attempt: this.outbox.attempt,
            place: this.place?.id ?? null,
            open: this.opening ?? this.open,
            have: [...this.items.keys()],
            near: !this.near.has(this.opening ?? this.open),
            ahead: this.ahead(),
            check: this.unchecked,
            trace: this.view.trace.wanted(),
        };
        this.unchecked = false;
        this.told = sent.open;
        this.wire.component?.setStateValue("outbox", sent);
    }

    /** Take in what Python answered: results of writes, items, neighbours, progress. */
    receive(component) {
        const answer = component.data;
        this.wire.component = component;
        if (!answer?.place) return;
        const moved = answer.place.id !== this.place?.id;
        if (moved) this.enter(answer);
        else if (answer.open !== this.told && answer.attempt === this.outbox.attempt) this.enter(answer);
        this.known = answer.open;
        for (const result of answer.results) this.outbox.settle(result);
        this.outbox.answered(answer.attempt);
        for (const [id, near] of Object.entries(answer.near)) this.near.set(id, near);
        for (const payload of answer.items) this.keep(payload);
        if (answer.trace) this.view.trace.receive(answer.trace);
        if (answer.progress) this.advance(answer.progress, moved);
        this.checkVersion(answer);
        this.tryOpen();
        // Python wrote where we were when it was asked; we may be further by now.
        if (this.opening ?? this.open) leaveInUrl(this.opening ?? this.open);
        this.view.header();
        this.view.banner();
        if (this.wants()) this.outbox.send();
    }

    /** Another dataset, reviewer or queue: forget what no longer holds, open what Python says. */
    enter(answer) {
        const before = this.place;
        this.place = answer.place;
        this.near.clear();
        this.trail = [];
        this.outbox.place = answer.place;
        this.inherit();
        if (before?.dataset === answer.place.dataset && before.reviewer === answer.place.reviewer) {
            if (answer.open !== null && answer.open === this.open) return;
        } else {
            this.items.clear();
        }
        this.open = null;
        this.item = null;
        this.opening = before ? answer.open : this.back(answer);
        if (answer.open === null) this.view.empty(answer.empty);
    }

    /**
     * The item to begin with: Python's, but where an excursion to another page was quicker than our
     * last words to Python, the one that we were at.
     */
    back({ open, place }) {
        const { left } = this.wire;
        const behind = left?.queue === queueOf(place) && left.python.includes(open);
        return behind ? left.item : open;
    }

    /**
     * Take over what pages that are gone left behind. No item is shown meanwhile: it would lack
     * those writes. A page of this tab that is still on its way out is asked for again.
     */
    async inherit(patience = 20) {
        this.stashed ??= [];
        const { items, dying } = await this.outbox.adopt().catch(() => ({ items: [], dying: false })); // storage may be forbidden
        for (const id of items) this.items.delete(id);
        if (items.includes(this.open)) {
            this.opening = this.open;
            this.view.opening();
        }
        const stashed = this.stashed ?? [];
        this.stashed = null;
        for (const payload of stashed) this.keep(payload);
        this.tryOpen();
        if (this.wants()) this.outbox.send();
        if (dying && patience > 0) setTimeout(() => this.inherit(patience - 1), 250);
    }

    /** How far the reviewer is; the last decision of a dataset is worth a word. */
    advance(progress, moved) {
        const left = ({ total, done, skipped }) => total - done - skipped;
        const before = this.progress;
        this.progress = progress;
        if (moved || !before || progress.total === 0 || left(before) === 0 || left(progress) > 0) return;
        this.view.say(`All ${plural(progress.total, "item")} decided. The Export page makes the file.`, true);
    }

    /** The first of the next few items whose content or neighbours are not here yet. */
    ahead() {
        return this.chain().find((id) => !this.items.has(id) || !this.near.has(id)) ?? null;
    }

    /** Ids of the next few items, as far as they are known. */
    chain() {
        const ids = [];
        let id = this.opening ?? this.open;
        while (ids.length < AHEAD) {
            id = this.near.get(id)?.next;
            if (!id) break;
            ids.push(id);
        }
        return ids;
    }

    /** Say whether Python still has to tell something: an item, its neighbours, the next one. */
    wants() {
        if (this.outbox.toSend().length > 0) return true;
        if (this.stashed) return false; // what came is looked at first
        if (this.view.trace.wanted()) return true;
        const id = this.opening ?? this.open;
        if (id === null || id === undefined) return false;
        return id !== this.told || !this.items.has(id) || !this.near.has(id) || this.ahead() !== null;
    }

    keep(payload) {
        if (this.outbox.holds(payload.id) && this.items.has(payload.id)) return;
        if (this.outbox.pending(payload.id) > 0) return; // its log is about to grow
        if (this.stashed) {
            this.stashed.push(payload);
            return;
        }
        this.items.set(payload.id, new Item(payload));
        if (this.open === payload.id) this.show(this.items.get(payload.id));
        const needed = new Set([this.open, this.opening, payload.id, ...this.chain()]);
        for (const id of this.items.keys()) {
            if (this.items.size <= KEEP_ITEMS) break;
            if (!needed.has(id)) this.items.delete(id);
        }
    }

    /** An item changed elsewhere while nothing of ours is under way: fetch it anew. */
    checkVersion(answer) {
        for (const [id, version] of Object.entries(answer.versions)) {
            const item = this.items.get(id);
            if (!item || this.outbox.pending(id) > 0 || this.outbox.holds(id)) continue;
            if (item.history.version !== version) this.items.delete(id);
        }
        if (this.open !== null && !this.items.has(this.open) && this.opening === null) {
            this.opening = this.open;
        }
    }

    tryOpen() {
        if (this.opening === null) return;
        const item = this.items.get(this.opening);
        if (!item) return;
        this.open = this.opening;
        this.opening = null;
        this.show(item);
    }

    show(item) {
        const again = this.item?.id === item.id;
        this.item = item;
        this.selection = null;
        this.caret = again ? Math.min(this.caret, item.text.length) : 0;
        this.refresh();
        this.focus = again && this.marks.has(this.focus) ? this.focus : this.firstMark();
        this.view.open(item);
        this.view.focusChanged({ scroll: true });
        if (!again) this.view.say(`Item ${item.id}. ${this.summary()}`);
        this.layOnTop();
    }

    // -- navigation

    go(step) {
        if (this.open === null || this.opening !== null) return this.view.say("Still opening.");
        if (step < 0 && this.trail.length > 0) return this.turnTo(this.trail.pop());
        const near = this.near.get(this.open);
        if (!near) return this.waitForNear(step);
        const id = step > 0 ? near.next : near.previous;
        if (!id) {
            return this.view.say(step > 0 ? "That was the last item here." : "This is the first item.", true);
        }
        if (step > 0) this.trail.push(this.open);
        return this.turnTo(id);
    }

    turnTo(id) {
        this.opening = id;
        leaveInUrl(id);
        this.unchecked = this.items.has(id);
        if (this.unchecked) this.tryOpen();
        else this.view.opening();
        this.outbox.send();
    }

    /** The key counts as soon as Python has said what comes next, however slow it is. */
    waitForNear(step, patience = NEAR_TRIES) {
        const at = this.open;
        this.view.say("Looking for the item.");
        setTimeout(() => {
            if (this.open !== at || this.opening !== null) return;
            if (this.near.has(at)) this.go(step);
            else if (patience > 0) this.waitForNear(step, patience - 1);
            else this.view.say("The server has not said what comes next. Press again.", true);
        }, NEAR_EVERY);
    }

    // -- operations

    /** Apply one operation here and now, and put it into the outbox. */
    apply(op) {
        const { history } = this.item;
        const base = history.version;
        try {
            history.push(op);
        } catch (error) {
            this.view.say(error.message, true);
            return false;
        }
        this.outbox.add({
            base, op, dataset: this.place.dataset, reviewer: this.place.reviewer, item: this.item.id,
        });
        this.refresh();
        this.view.repaint();
        return true;
    }

    refresh() {
        const chosen = this.marks?.get(this.focus);
        this.marks = marksOf(this.item, this.hiddenOnes());
        if (!chosen || this.marks.has(this.focus)) return;
        const there = [...this.marks.values()].find((mark) => mark.start === chosen.start && mark.end === chosen.end);
        this.focus = there?.id ?? null;
    }

    get focused() {
        return this.focus ? this.marks.get(this.focus) : undefined;
    }

    firstMark() {
        let first = null;
        for (const mark of this.marks.values()) {
            if (mark.kind === "open") return mark.id;
            first ??= mark.id;
        }
        return first;
    }

    focusOn(id, options = { scroll: true }) {
        this.focus = id;
        const mark = this.focused;
        if (mark) this.caret = mark.start;
        this.dropSelection();
        this.view.focusChanged(options);
        if (mark) this.view.say(describe(mark));
    }

    dropSelection() {
        this.selection = null;
        this.view.caret();
    }

    /** Take the focused mark over as one's own span; returns the id of the own span. */
    own() {
        const mark = this.focused;
        if (!mark) return null;
        if (mark.kind === "own") return mark.span;
        const span = newId();
        if (!this.apply({ kind: "accept", span, mark: mark.best })) return null;
        this.moveFocus(`own:${span}`);
        return span;
    }

    moveFocus(id) {
        this.focus = id;
        this.view.focusChanged({ scroll: false });
    }

    toNextOpen(from) {
        const open = [...this.marks.values()].filter((mark) => mark.kind === "open");
        const next = open.find((mark) => mark.start >= from) ?? open[0];
        if (next) this.focusOn(next.id);
        return next;
    }

    draw(start, end) {
        const [from, to] = [this.item.text.point(start), this.item.text.point(end)];
        const same = [...this.marks.values()].find((mark) => mark.start === start && mark.end === end);
        this.dropSelection();
        if (same) {
            this.focusOn(same.id, { scroll: false });
            if (same.kind !== "own") this.own();
            return true;
        }
        const span = newId();
        if (!this.apply({ kind: "add", span, start: from, end: to, label: null })) return false;
        this.focusOn(`own:${span}`, { scroll: false });
        return true;
    }

    resize(start, end) {
        const { text } = this.item;
        if (start >= end || start < 0 || end > text.length) return false;
        const span = this.own();
        if (!span) return false;
        const done = this.apply({ kind: "resize", span, start: text.point(start), end: text.point(end) });
        if (done) this.focusOn(`own:${span}`, { scroll: false });
        return done;
    }

    label(label) {
        const span = this.own();
        if (!span) return this.view.say("Choose a span first.", true);
        this.apply({ kind: "relabel", span, label });
        this.view.focusChanged({ scroll: false });
        return this.view.say(label ? `Labelled ${label}.` : "No label.");
    }

    comment(whole) {
        if (!whole && !this.focused) return this.view.say("Choose a span first.", true);
        const own = this.focused?.kind === "own" ? this.item.history.state.spans.get(this.focused.span) : null;
        const text = whole ? this.item.history.state.note : own?.note;
        this.view.ask(whole ? "Comment on the whole answer" : "Comment on this span", text ?? "", (typed) => {
            const span = whole ? null : this.own();
            if (!whole && !span) return;
            this.apply({ kind: "note", span, text: typed });
            this.view.focusChanged({ scroll: false });
            this.view.say(typed ? "Comment kept." : "Comment taken away.");
        });
    }

    finish(status) {
        if (this.item.history.state.status !== status) this.apply({ kind: "status", status });
        const left = this.count("open");
        const done = status === "done" ? "Done" : "Skipped";
        this.view.say(left && status === "done" ? `${done}, ${left} suggestions undecided.` : `${done}.`);
        this.go(1);
    }

    /** Open suggestions that at least one annotator takes for hallucinated, not merely suspects. */
    likely() {
        return [...this.marks.values()].filter((mark) => mark.kind === "open" && mark.likely);
    }

    count(kind) {
        let count = 0;
        for (const mark of this.marks.values()) if (mark.kind === kind) count += 1;
        return count;
    }

    summary() {
        return `${STATUS_WORDS[this.item.history.state.status]}. ${this.count("own")} of your spans, `
            + `${this.count("open")} open suggestions.`;
    }

    moveCaret(to, extend, byWords = false) {
        const { text } = this.item;
        const caret = Math.max(0, Math.min(text.length, to));
        this.selection = extend ? { anchor: this.selection?.anchor ?? this.caret, focus: caret, byWords } : null;
        if (this.selection && this.selection.anchor === caret) this.selection = null;
        this.caret = caret;
        this.view.caret({ scroll: true });
        this.view.say(extend && this.selection ? `Selected ${quote(this.selected())}` : text.graphemeAt(caret));
        return true;
    }

    range() {
        if (!this.selection) return null;
        const { anchor, focus } = this.selection;
        return { start: Math.min(anchor, focus), end: Math.max(anchor, focus) };
    }

    selected() {
        const range = this.range();
        return range ? this.item.text.slice(range.start, range.end) : "";
    }

    /** Detectors and votes are shown, gold labels and other people are not, unless chosen. */
    isShown({ name, kind }) {
        return this.shown.get(name) ?? (kind === "detector" || kind === "vote");
    }

    hiddenOnes() {
        const hidden = this.item.payload.annotators.filter((annotator) => !this.isShown(annotator));
        return new Set(hidden.map((annotator) => annotator.name));
    }

    toggle(annotator) {
        this.shown.set(annotator.name, !this.isShown(annotator));
        remember(this.shown);
        this.refresh();
        this.view.open(this.item);
        this.view.focusChanged({ scroll: false });
    }

    // -- a write that came too late

    takeTheirs() {
        this.outbox.drop(this.item.id);
        this.reopen();
    }

    putMineOnTop() {
        this.mine = { item: this.item.id, ops: inForce(this.outbox.drop(this.item.id)) };
        this.reopen();
    }

    reopen() {
        this.items.delete(this.open);
        this.opening = this.open;
        this.open = null;
        this.view.banner();
        this.view.opening();
        this.outbox.send();
    }

    layOnTop() {
        const { mine } = this;
        if (!mine || mine.item !== this.item.id) return;
        this.mine = null;
        let lost = 0;
        for (const op of mine.ops) if (!this.apply(op)) lost += 1;
        this.view.say(lost ? `${lost} of your changes no longer fit and were left out.` : "Your changes are on top.", true);
    }

    // -- commands by name; returning false means "not for me, try the next binding"

    run(command, event, key) {
        if (command !== "help" && command !== "escape" && !this.item) {
            this.view.say("Nothing is open.");
            return true;
        }
        if (this.opening !== null && !ALWAYS.has(command)) {
            this.view.say("Still opening the item.");
            return true;
        }
        return COMMANDS[command](this, event, key) !== false;
    }
}

/** Which annotators this browser's reviewer chose to see or hide. */
function remembered() {
    try {
        return JSON.parse(localStorage.getItem(SHOWN) ?? "{}");
    } catch {
        return {};
    }
}

function remember(shown) {
    try {
        localStorage.setItem(SHOWN, JSON.stringify(Object.fromEntries(shown)));
    } catch {
        // a full or forbidden storage costs the memory of this choice, nothing else
    }
}

const SHOWN = "spanlab.shown";
const ALWAYS = new Set(["help", "escape"]);
const AHEAD = 3;
const KEEP_ITEMS = 10;
const RETRY_EVERY = 500;
const NEAR_EVERY = 100;
const NEAR_TRIES = 50;
const STATUS_WORDS = {
    "not-annotated": "Not annotated yet",
    draft: "Draft",
    done: "Done",
    failed: "Failed",
    skipped: "Skipped",
};

/** Every command of the key table; keys.py says what each does and by which key. */
export const COMMANDS = {
    nextSpan: (editor, event) => step(editor, 1, event),
    previousSpan: (editor, event) => step(editor, -1, event),
    nextEvidence: (editor) => editor.view.nextEvidence(),
    trace: (editor) => editor.view.trace.toggle(),
    nextTrace: (editor) => editor.view.trace.next(),
    accept: (editor) => {
        const mark = editor.focused;
        if (!mark || mark.kind === "own") return editor.view.say("No suggestion is chosen.", true);
        const from = mark.start;
        if (!editor.own()) return true;
        editor.toNextOpen(from);
        return editor.view.say(`Accepted ${quote(mark.text)}.`);
    },
    reject: (editor) => reject(editor),
    acceptAll: (editor) => {
        const open = editor.likely();
        if (open.length === 0) return editor.view.say("No likely suggestion is open.", true);
        editor.apply({ kind: "accept-all", spans: open.map(newId), marks: open.map((mark) => mark.best) });
        editor.view.focusChanged({ scroll: false });
        return editor.view.say(`Accepted ${open.length} suggestions.`);
    },
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
        const label = editor.labels[Number(key) - 1];
        return label ? editor.label(label) : editor.view.say(`There is no label ${key}.`, true);
    },
    unlabel: (editor) => editor.label(null),
    comment: (editor) => editor.comment(false),
    commentItem: (editor) => editor.comment(true),
    moveCharacter: (editor, event) => editor.moveCaret(aside(editor, event, "grapheme"), false),
    moveWord: (editor, event) => editor.moveCaret(aside(editor, event, "word"), false),
    moveLine: (editor, event) => editor.moveCaret(editor.view.lineAway(event.key), false),
    moveEdge: (editor, event) => editor.moveCaret(paragraphEdge(editor, event), false),
    selectCharacter: (editor, event) => editor.moveCaret(aside(editor, event, "grapheme"), true),
    selectWord: (editor, event) => editor.moveCaret(aside(editor, event, "word"), true, true),
    selectLine: (editor, event) => editor.moveCaret(editor.view.lineAway(event.key), true),
    selectEdge: (editor, event) => editor.moveCaret(paragraphEdge(editor, event), true),
    selectThisWord: (editor) => {
        const { text } = editor.item;
        const range = editor.range();
        if (range) return editor.moveCaret(text.nextWord(range.end), true, true);
        const [start, end] = text.wordAt(editor.caret);
        editor.caret = start;
        return editor.moveCaret(end, true, true);
    },
    draw: (editor) => {
        const selected = editor.range();
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
    done: (editor) => editor.finish("done"),
    skip: (editor) => editor.finish("skipped"),
    reopen: (editor) => {
        if (editor.item.history.state.status === "not-annotated") return editor.view.say("It is not done yet.");
        editor.apply({ kind: "status", status: "not-annotated" });
        return editor.view.say("Not done any more.");
    },
    nextItem: (editor) => editor.go(1),
    previousItem: (editor) => editor.go(-1),
    undo: (editor) => again(editor, "undo", editor.item.history.canUndo, "Undone."),
    redo: (editor) => again(editor, "redo", editor.item.history.canRedo, "Redone."),
    help: (editor) => editor.view.help(),
    escape: (editor) => editor.view.escape(),
};

/** Undo or redo, and choose what came back by it. */
function again(editor, kind, possible, done) {
    if (!possible) {
        const back = kind === "undo" && editor.trail.length > 0 ? " here. PgUp leads back to the item before" : "";
        return editor.view.say(`Nothing to ${kind}${back}.`, true);
    }
    const before = editor.marks;
    editor.apply({ kind });
    const changed = [...editor.marks.keys()].find((id) => !before.has(id));
    if (changed) editor.focusOn(changed);
    else editor.view.focusChanged({ scroll: false });
    return editor.view.say(done);
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
    const index = marks.findIndex((mark) => mark.start >= editor.caret);
    return index < 0 ? 0 : index;
}

function reject(editor) {
    const mark = editor.focused;
    if (!mark || mark.kind === "rejected") return editor.view.say("No suggestion is chosen.", true);
    if (mark.kind === "own" && !mark.origin) return COMMANDS.remove(editor);
    const refused = mark.origin ?? mark.best;
    if (mark.kind === "own" && mark.edited) editor.apply({ kind: "remove", span: mark.span });
    editor.apply({ kind: "reject", mark: refused });
    if (!editor.toNextOpen(mark.start)) editor.view.focusChanged({ scroll: false });
    return editor.view.say(`Rejected ${quote(mark.text)}.`);
}

/** Where the caret lands one grapheme or word to the left or right, in the reading direction. */
function aside(editor, event, unit) {
    const { text } = editor.item;
    const forward = (event.key === "ArrowRight") !== editor.view.isRightToLeft(editor.caret);
    if (unit === "grapheme") return forward ? text.nextGrapheme(editor.caret) : text.previousGrapheme(editor.caret);
    return forward ? text.nextWord(editor.caret) : text.previousWord(editor.caret);
}

function paragraphEdge(editor, event) {
    const paragraph = editor.item.text.paragraphAt(editor.caret);
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

/** Key specification → commands in the table's order. */
function bindings(keys) {
    const map = new Map();
    for (const key of keys) {
        for (const spec of key.keys) map.set(spec, [...(map.get(spec) ?? []), key.command]);
    }
    return map;
}

/** Write a keyboard event the way the key table writes keys. */
export function specOf(event) {
    const name = event.key === " " ? "Space" : event.key;
    const graph = event.getModifierState?.("AltGraph") ?? false;
    const ctrl = (event.ctrlKey || event.metaKey) && !graph;
    const alt = event.altKey && !graph;
    const letter = /^[a-z]$/i.test(name);
    const shift = event.shiftKey && (name.length > 1 || (letter && ctrl));
    const key = letter && ctrl ? name.toLowerCase() : name;
    return `${ctrl ? "Ctrl+" : ""}${alt ? "Alt+" : ""}${shift ? "Shift+" : ""}${key}`;
}

function newId() {
    return `s${randomId().slice(0, 12)}`;
}

function randomId() {
    const bytes = crypto.getRandomValues(new Uint8Array(16));
    return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

function quote(text) {
    const short = [...text].length > 60 ? `${[...text].slice(0, 59).join("")}…` : text;
    return `“${short}”`;
}

function describe(mark) {
    const kind = { own: "your span", open: "suggestion", rejected: "rejected suggestion" }[mark.kind];
    const label = mark.label ? `, ${mark.label}` : "";
    const by = mark.members.map((member) => member.annotator).join(", ");
    const prob = mark.kind === "own" ? "" : `, probability ${percent(mark.prob)}`;
    return `${quote(mark.text)}, ${kind}${label}${prob}${by ? `, by ${by}` : ""}`;
}

function percent(prob) {
    return `${Math.round(prob * 100)} %`;
}

// ------------------------------------------------------------------------------------ View

/** All that can be seen. Knows the editor for what to show, changes nothing of it itself. */
class View {
    constructor(parent, editor) {
        this.editor = editor;
        this.build(parent);
        this.listen();
        this.painted = [];
        this.rows = [];
        this.todo = {};
    }

    build(parent) {
        this.root = h("div", { class: "sl", "data-unsaved": "0" });
        this.buildHead();
        this.banners = h("div", { class: "sl-banner", role: "alert", hidden: "" });
        this.question = h("div", { class: "sl-question", dir: "auto" });
        this.text = h("div", { class: "sl-text" });
        this.caretMark = h("div", { class: "sl-caret", "aria-hidden": "true", hidden: "" });
        this.handles = ["start", "end"].map((side) => h("div", {
            class: `sl-handle sl-handle-${side}`, "aria-hidden": "true", hidden: "", "data-side": side,
        }));
        this.tools = h("div", { class: "sl-tools", role: "toolbar", "aria-label": "Span", hidden: "" });
        this.answer = h("div", {
            class: "sl-answer", tabindex: "0", role: "application",
            "aria-label": "Answer under review. Press question mark for the keys.",
        }, this.text, this.caretMark, ...this.handles, this.tools);
        this.field = h("form", { class: "sl-ask", hidden: "" });
        this.left = h("section", { class: "sl-left", "aria-label": "Answer" }, this.question, this.answer, this.field);
        this.buildRight();
        this.main = h("div", { class: "sl-main" }, this.left, this.right);
        this.nothing = h("div", { class: "sl-nothing", role: "status", hidden: "" });
        this.actions = h("footer", { class: "sl-actions" });
        this.buildActions();
        this.sheet = h("div", { class: "sl-sheet", role: "dialog", "aria-modal": "true", "aria-label": "Keys", tabindex: "-1", hidden: "" });
        this.live = h("div", { class: "sl-live", "aria-live": "polite", role: "status" });
        this.toast = h("div", { class: "sl-toast", "aria-hidden": "true", hidden: "" });
        this.root.append(
            this.head, this.banners, this.nothing, this.main, this.actions, this.sheet, this.toast, this.live,
        );
        parent.append(this.root);
    }

    buildHead() {
        this.progressText = h("span", { class: "sl-progress-text" });
        this.progressBar = h("div", { class: "sl-progress-bar", "aria-hidden": "true" }, h("div", {}));
        this.itemName = h("span", { class: "sl-item" });
        this.status = h("span", { class: "sl-status" });
        this.remark = h("span", { class: "sl-remark", dir: "auto" });
        this.savedText = h("span", { class: "sl-saved", role: "status" });
        this.head = h("header", { class: "sl-head" },
            h("div", { class: "sl-progress" }, this.progressText, this.progressBar),
            this.itemName, this.status, this.remark, this.savedText);
    }

    buildRight() {
        this.card = h("section", { class: "sl-card", "aria-label": "Span" });
        this.annotators = h("div", { class: "sl-annotators", role: "group", "aria-label": "Suggestions shown" });
        this.passages = h("div", { class: "sl-passages", tabindex: "0", role: "region", "aria-label": "Evidence" });
        this.listTitle = h("h3", { class: "sl-title" });
        this.listSpace = h("div", { class: "sl-list-space" });
        this.list = h("div", { class: "sl-list", role: "listbox", "aria-label": "Spans" }, this.listSpace);
        this.trace = new TracePanel(this);
        this.right = h("aside", { class: "sl-right", "aria-label": "Evidence and spans" },
            this.card,
            this.trace.node,
            h("section", { class: "sl-evidence" }, h("h3", { class: "sl-title" }, "Evidence"), this.passages),
            h("section", { class: "sl-spans" }, this.listTitle, this.annotators, this.list));
    }

    buildActions() {
        const button = (name, command, className = "") => this.button(name, command, className);
        this.acceptAllButton = button("Accept likely", "acceptAll");
        this.actions.append(
            button("‹ Previous", "previousItem"), button("Next ›", "nextItem"),
            h("span", { class: "sl-gap" }),
            button("Undo", "undo"), button("Redo", "redo"), this.acceptAllButton,
            button("Comment answer", "commentItem"), button("Keys", "help"),
            h("span", { class: "sl-gap" }),
            button("Skip", "skip"), button("Done", "done", "sl-primary"),
        );
    }

    /** A button that does what a key does, and says which key. */
    button(name, command, className = "", key = null) {
        const entry = this.editor.keys.find((one) => one.command === command);
        const shown = key ?? entry?.keys.at(0) ?? "";
        const does = key ? `Label the span “${name}”` : entry?.does ?? name;
        const node = h("button", {
            class: `sl-button ${className}`, type: "button", "data-command": command,
            title: `${does} (${keyName(shown)})`,
        },
            h("span", {}, name), h("kbd", { "aria-hidden": "true" }, keyName(shown)));
        node.addEventListener("mousedown", (event) => event.preventDefault());
        node.addEventListener("click", (event) => {
            const mouse = { key: event.detail === 0 ? "Enter" : "", target: node };
            if (command === "done") this.editor.dropSelection();
            this.editor.run(command, mouse, key);
            if (!OPENS.has(command) && this.field.hidden) this.answer.focus({ preventScroll: true });
        });
        return node;
    }

    unmount() {
        this.listening.abort();
        this.root.remove();
    }

    /** Fill what the window has left below whatever stands above the editor. */
    fill() {
        const top = this.root.getBoundingClientRect().top + (this.root.closest("section")?.scrollTop ?? 0);
        this.root.style.setProperty("--sl-top", `${Math.round(top)}px`);
    }

    /** Follow Streamlit's theme: our colours differ between a dark and a light background. */
    theme(parent) {
        const style = getComputedStyle(parent.host ?? parent);
        const colour = style.getPropertyValue("--st-background-color").trim();
        this.root.classList.toggle("sl-dark", luminance(colour) < 0.4);
        this.fill();
    }

    // -- whole item

    open(item) {
        this.fill();
        this.nothing.hidden = true;
        this.main.hidden = false;
        this.root.classList.remove("sl-opening");
        this.question.textContent = item.payload.question;
        this.question.lang = item.payload.lang;
        this.question.hidden = !item.payload.question;
        this.answer.lang = item.payload.lang;
        this.root.dataset.item = item.id;
        if (this.paintedItem !== item) {
            this.buildText(item.text);
            this.paintedItem = item;
            this.answer.scrollTop = 0;
            this.tools.hidden = true;
        }
        this.buildPassages(item.payload.passages);
        this.buildAnnotators(item.payload.annotators);
        this.repaint();
        this.header();
        this.banner();
        this.trace.follow();
        if (this.mayTakeFocus()) this.answer.focus({ preventScroll: true });
    }

    mayTakeFocus() {
        const active = document.activeElement;
        const elsewhere = this.field.contains(active) || this.trace.node.contains(active);
        return !active || active === document.body || (this.root.contains(active) && !elsewhere);
    }

    opening() {
        this.root.classList.add("sl-opening");
        this.root.dataset.item = "";
        this.say("Opening the item.");
    }

    empty(message) {
        this.root.dataset.item = "";
        this.main.hidden = true;
        this.nothing.hidden = false;
        this.nothing.replaceChildren(h("p", {}, message ?? "Nothing to review here."));
        this.header();
    }

    buildText(text) {
        this.elements = [];
        this.painted = [];
        const chunks = [];
        let chunk = null;
        let size = 0;
        text.paragraphs.forEach((paragraph, index) => {
            if (!chunk || size > CHUNK) {
                if (chunk) sizeHint(chunk, size);
                chunk = h("div", { class: "sl-chunk" });
                chunks.push(chunk);
                size = 0;
            }
            const element = h("div", { class: "sl-p", dir: "auto" });
            element.slIndex = index;
            chunk.append(element);
            this.elements.push(element);
            size += paragraph.end - paragraph.start + LINE;
        });
        if (chunk) sizeHint(chunk, size);
        this.text.replaceChildren(...chunks);
    }

    /** Something changed; all that one key changes is painted at once, when its command is over. */
    repaint() {
        this.todo.marks = true;
        this.schedule();
    }

    schedule() {
        if (this.scheduled) return;
        this.scheduled = true;
        queueMicrotask(() => this.flush());
    }

    /** Paint what is due. Whoever asks where something stands on the screen calls this first. */
    flush() {
        this.scheduled = false;
        const { todo } = this;
        this.todo = {};
        if (!this.editor.item) return;
        if (todo.marks) this.paintMarks();
        if (todo.focus) {
            this.paintCard();
            this.paintEvidence();
        }
        if (todo.scroll && this.editor.focused) this.scrollTo(this.editor.focused.start);
        else if (todo.scrollCaret) this.scrollTo(this.editor.caret, 0.15);
        if (todo.marks || todo.caret) this.paintCaret();
        if (todo.focus) this.placeTools();
    }

    /** Paint the paragraphs whose marks changed, then everything that lists marks. */
    paintMarks() {
        const { item, marks, focus } = this.editor;
        this.rows = [...marks.values()];
        const perParagraph = spread(this.rows, item.text);
        this.elements.forEach((element, index) => {
            const here = perParagraph.get(index) ?? NO_MARKS;
            const signature = here.map(({ mark, lane }) => signatureOf(mark, lane, focus)).join("|");
            if (this.painted[index] === signature) return;
            this.painted[index] = signature;
            this.paintParagraph(element, item.text, here);
        });
        const index = this.rows.findIndex((mark) => mark.id === focus);
        if (index >= 0) this.scrollList(index);
        this.paintList();
        this.header();
    }

    /** Replace the pieces of a paragraph that differ; those before and behind them stay. */
    paintParagraph(element, text, here) {
        const pieces = piecesOf(text.paragraphs[element.slIndex], here);
        const { focus } = this.editor;
        element.style.lineHeight = lineHeight(here);
        const signatures = pieces.map(({ start, end, over }) => (
            `${start} ${end} ${over.map(({ mark, lane }) => signatureOf(mark, lane, focus)).join("|")}`
        ));
        const before = element.slSignatures ?? [];
        const most = Math.min(before.length, signatures.length);
        let same = 0;
        while (same < most && before[same] === signatures[same]) same += 1;
        let behind = 0;
        while (behind < most - same && before.at(-1 - behind) === signatures.at(-1 - behind)) behind += 1;
        for (let count = before.length - same - behind; count > 0; count -= 1) element.childNodes[same].remove();
        const fresh = pieces.slice(same, pieces.length - behind).map((piece) => this.piece(piece, text));
        const next = element.childNodes[same] ?? null;
        for (const node of fresh) element.insertBefore(node, next);
        element.slSignatures = signatures;
    }

    piece(piece, text) {
        const content = document.createTextNode(text.slice(piece.start, piece.end));
        content.slStart = piece.start;
        return piece.over.length === 0 ? content : this.segment(piece, content);
    }

    segment(piece, content) {
        const node = h("span", { class: segmentClasses(piece, this.editor.focus) });
        node.slMarks = piece.over.map(({ mark }) => mark.id);
        node.style.cssText = segmentStyle(piece);
        const numbers = piece.over.filter(({ mark }) => mark.start === piece.start).map(({ mark }) => this.numeral(mark));
        const shown = numbers.filter(Boolean).join("·");
        if (shown) node.dataset.n = shown;
        node.append(content);
        return node;
    }

    /** The small numeral at a span's start: probability of a suggestion, label of one's own. */
    numeral(mark) {
        if (mark.kind === "rejected") return "";
        if (mark.kind === "open") return String(Math.round(mark.prob * 100));
        const label = this.editor.labels.indexOf(mark.label);
        return mark.label ? `✓${label >= 0 ? label + 1 : ""}` : "✓";
    }

    header() {
        const { item, progress } = this.editor;
        if (progress) {
            this.progressText.textContent = `${progress.done} of ${progress.total} done`
                + (progress.skipped ? `, ${progress.skipped} skipped` : "");
            const share = progress.total ? (progress.done + progress.skipped) / progress.total : 0;
            this.progressBar.firstChild.style.width = `${share * 100}%`;
        }
        this.actions.hidden = !item;
        if (!item) {
            this.itemName.textContent = this.status.textContent = this.remark.textContent = "";
            return;
        }
        const { state } = item.history;
        const draft = state.status === "not-annotated" && item.history.version > 0
            && (state.spans.size > 0 || state.rejected.length > 0 || state.note);
        const status = draft ? "draft" : state.status;
        this.itemName.textContent = `${item.id} · ${item.payload.lang}`;
        const checked = status === "done" && state.spans.size === 0 ? "Done: checked, no spans" : STATUS_WORDS[status];
        this.status.textContent = checked;
        this.status.dataset.status = status;
        this.root.dataset.status = status;
        this.remark.textContent = state.note ? `“${state.note}”` : "";
        this.remark.title = state.note ?? "";
        const likely = this.editor.likely().length;
        this.acceptAllButton.firstChild.textContent = likely ? `Accept likely ${likely}` : "Accept likely";
        this.acceptAllButton.disabled = likely === 0;
        this.actions.querySelector('[data-command="undo"]').disabled = !item.history.canUndo;
        this.actions.querySelector('[data-command="redo"]').disabled = !item.history.canRedo;
    }

    saved(outbox) {
        const unsaved = outbox.writes.length;
        const held = outbox.writes.filter((write) => write.held).length;
        this.root.dataset.unsaved = String(unsaved);
        const where = outbox.full ? "in this page only" : "here";
        let words = "All saved";
        if (held > 0) words = `${held} not saved, kept ${where}`;
        else if (outbox.offline) words = unsaved ? `Offline: ${unsaved} kept ${where}` : "Offline";
        else if (unsaved > 0) words = `Saving ${unsaved}…`;
        this.savedText.textContent = words;
        const places = outbox.writes.filter((write) => write.held).map((write) => `${write.dataset}: ${write.item}`);
        this.savedText.title = [...new Set(places)].join("\n");
        this.savedText.dataset.state = held ? "held" : outbox.offline ? "offline" : unsaved ? "saving" : "saved";
    }

    /** What happened to writes that came too late, with the two ways on. */
    banner() {
        const { item, outbox } = this.editor;
        const held = item ? outbox.writes.filter((write) => outbox.concerns(write, item.id) && write.held) : [];
        this.banners.hidden = held.length === 0;
        if (held.length === 0 || this.bannerFor === `${item.id} ${held.length}`) return;
        const [first] = held;
        const why = first.stale
            ? `This item was changed in another tab or window under the name ${first.reviewer} since you opened it here. `
            : `The server refused a change: ${first.reason} `;
        const choose = (name, act) => {
            const node = h("button", { class: "sl-button", type: "button" }, name);
            node.addEventListener("click", () => {
                this.bannerFor = null;
                act();
            });
            return node;
        };
        this.banners.replaceChildren(
            h("p", {}, why, `Your ${plural(held.length, "change")} here ${held.length === 1 ? "is" : "are"} not saved yet.`),
            choose("Take theirs", () => this.editor.takeTheirs()),
            choose("Put mine on top", () => this.editor.putMineOnTop()),
        );
    }

    // -- right-hand side

    buildPassages(passages) {
        if (this.passagesOf === passages) return;
        this.passagesOf = passages;
        this.passageBodies = passages.map((passage) => h("div", { class: "sl-passage-text", dir: "auto" }, passage.text));
        this.passageTexts = passages.map((passage) => new Text(passage.text, this.editor.item.payload.lang));
        this.marked = new Set();
        this.evidenceShown = "";
        const nodes = passages.map((passage, index) => h("article", { class: "sl-passage" },
            passageHead(passage, index), this.passageBodies[index]));
        if (nodes.length === 0) nodes.push(h("p", { class: "sl-quiet" }, "This item came without passages."));
        this.passages.replaceChildren(...nodes);
        this.passages.scrollTop = 0;
    }

    buildAnnotators(annotators) {
        const inOrder = Object.keys(KIND_WORDS);
        const sorted = [...annotators].sort((one, two) => inOrder.indexOf(one.kind) - inOrder.indexOf(two.kind));
        const nodes = sorted.flatMap((annotator) => [this.annotator(annotator), ...this.traceOpener(annotator)]);
        if (nodes.length === 0) nodes.push(h("span", { class: "sl-quiet" }, "Nobody has annotated this item yet."));
        this.annotators.replaceChildren(...nodes);
    }

    annotator(annotator) {
        const shown = this.editor.isShown(annotator);
        const what = annotator.status === "done" ? plural(annotator.spans.length, "span") : STATUS_WORDS[annotator.status];
        const node = h("button", {
            class: "sl-chip", type: "button", "aria-pressed": String(shown), "data-status": annotator.status,
            title: shown ? "Shown; click to hide" : "Hidden; click to show",
        }, h("b", {}, annotator.name), ` ${kindOf(annotator)} · ${shown || annotator.status !== "done" ? what : "hidden"}`);
        if (annotator.note && (shown || annotator.status === "failed")) node.append(" ", h("i", { dir: "auto", title: annotator.note }, annotator.note));
        node.addEventListener("mousedown", (event) => event.preventDefault());
        node.addEventListener("click", () => this.editor.toggle(annotator));
        return node;
    }

    /** Beside an annotator's chip, the way to its trace if it has one. */
    traceOpener(annotator) {
        if (!tellsOfItself(annotator)) return [];
        const node = h("button", {
            class: "sl-chip sl-chip-trace", type: "button", title: `How ${annotator.name} came to this (${keyName("t")})`,
            "aria-label": `Trace of ${annotator.name}`,
        }, "trace");
        node.addEventListener("mousedown", (event) => event.preventDefault());
        node.addEventListener("click", () => this.trace.tell(annotator.name));
        return [node];
    }

    focusChanged({ scroll = false } = {}) {
        Object.assign(this.todo, { marks: true, focus: true, scroll: this.todo.scroll || scroll });
        this.schedule();
    }

    paintCard() {
        const mark = this.editor.focused;
        if (!mark) {
            this.card.replaceChildren(h("p", { class: "sl-quiet" }, this.rows.length
                ? "No span is chosen. Tab goes to the next one."
                : "No spans. Drag over the text, or select with Shift and arrows and press d."));
            return;
        }
        const kind = { own: "Your span", open: "Suggestion", rejected: "Rejected" }[mark.kind];
        const votes = this.editor.item.votes(mark.start, mark.end, this.editor.hiddenOnes());
        this.card.replaceChildren(
            h("div", { class: "sl-card-head" },
                h("span", { class: `sl-kind sl-kind-${mark.kind}` }, kind),
                mark.kind === "own" ? "" : h("span", { class: "sl-prob" }, meter(mark.prob), percent(mark.prob)),
                mark.label ? h("span", { class: "sl-label" }, mark.label) : "",
                h("span", { class: "sl-card-tools" }, ...this.toolButtons(mark))),
            h("blockquote", { dir: "auto", lang: this.editor.item.payload.lang }, shorten(mark.text, 220)),
            mark.note ? h("p", { class: "sl-note", dir: "auto" }, mark.note) : "",
            votes.length ? h("ul", { class: "sl-votes", "aria-label": "Who marks it" }, ...votes.map(voteLine)) : "",
            this.labelRow(mark));
    }

    labelRow(mark) {
        const row = h("div", { class: "sl-labels", role: "group", "aria-label": "Label" });
        this.editor.labels.forEach((label, index) => {
            const node = this.button(label, "label", mark.label === label ? "sl-chosen" : "", String(index + 1));
            node.setAttribute("aria-pressed", String(mark.label === label));
            row.append(node);
        });
        return row;
    }

    /** Quotes that belong to the chosen span: its own, else those of suggestions over it. */
    evidence() {
        const mark = this.editor.focused;
        if (!mark) return [];
        if (mark.evidence.length > 0) return distinct(mark.evidence);
        const hidden = this.editor.hiddenOnes();
        return distinct(this.editor.item.groups
            .filter((group) => group.start < mark.end && group.end > mark.start)
            .flatMap((group) => group.members)
            .filter((member) => !hidden.has(member.annotator))
            .flatMap((member) => member.evidence ?? []));
    }

    paintEvidence() {
        const quotes = this.evidence();
        const signature = JSON.stringify(quotes);
        if (signature === this.evidenceShown) return;
        this.evidenceShown = signature;
        const touched = new Set([...this.marked, ...quotes.map((quote) => quote.passage)]);
        for (const index of touched) this.paintPassage(index, quotes.filter((quote) => quote.passage === index));
        this.marked = new Set(quotes.map((quote) => quote.passage));
        this.evidenceAt = 0;
        this.showEvidence();
    }

    paintPassage(index, quotes) {
        const body = this.passageBodies[index];
        if (!body) return;
        const text = this.passageTexts[index];
        const nodes = [];
        let at = 0;
        for (const quote of quotes.sort((one, two) => one.start - two.start)) {
            const [start, end] = [Math.max(at, text.unit(quote.start)), text.unit(quote.end)];
            if (start >= end) continue;
            nodes.push(text.slice(at, start), h("mark", {
                class: `sl-quote sl-${quote.stance}`, title: STANCE_WORDS[quote.stance],
            }, text.slice(start, end)), h("small", { class: "sl-stance" }, stanceWords(quote)));
            at = end;
        }
        nodes.push(text.slice(at, text.length));
        body.replaceChildren(...nodes);
    }

    showEvidence() {
        const marks = this.passages.querySelectorAll("mark");
        if (marks.length === 0) return false;
        const chosen = marks[this.evidenceAt % marks.length];
        for (const mark of marks) mark.classList.toggle("sl-chosen", mark === chosen);
        centre(this.passages, chosen);
        return chosen;
    }

    nextEvidence() {
        this.evidenceAt = (this.evidenceAt ?? -1) + 1;
        const shown = this.showEvidence();
        return this.say(shown ? `Evidence: ${shown.textContent}` : "No evidence for this span.", !shown);
    }

    /** Bring a passage into sight with these quotes marked, until another span is chosen. */
    showPassage(index, quotes) {
        for (const other of new Set([...this.marked, index])) this.paintPassage(other, other === index ? [...quotes] : []);
        this.marked = new Set([index]);
        this.evidenceShown = null;
        this.evidenceAt = 0;
        if (!this.showEvidence()) centre(this.passages, this.passageBodies[index].parentElement);
        this.say(`${this.passageBodies[index].parentElement.firstChild.textContent}. ${quotes.map((quote) => quote.note ?? "").join(" ")}`.trim());
    }

    /** Rows of the span list that can be seen; the others exist only as height. */
    paintList() {
        const { rows } = this;
        const own = this.editor.count("own");
        this.listTitle.textContent = `Spans: ${own} yours, ${this.editor.count("open")} open`;
        this.listSpace.style.height = `${rows.length * ROW}px`;
        const first = Math.max(0, Math.floor(this.list.scrollTop / ROW) - 3);
        const last = Math.min(rows.length, first + Math.ceil((this.list.clientHeight || 300) / ROW) + 6);
        const nodes = [];
        for (let index = first; index < last; index += 1) nodes.push(this.row(rows[index], index));
        this.listSpace.replaceChildren(...nodes);
    }

    row(mark, index) {
        const chosen = mark.id === this.editor.focus;
        const sign = { own: "■", open: "◌", rejected: "✕" }[mark.kind];
        const node = h("div", {
            class: `sl-row sl-row-${mark.kind}`, role: "option", "aria-selected": String(chosen),
            "aria-setsize": String(this.rows.length), "aria-posinset": String(index + 1),
            "aria-label": describe(mark), "data-mark": mark.id,
        },
        h("span", { class: "sl-sign", "aria-hidden": "true" }, sign),
        h("span", { class: "sl-row-prob" }, mark.kind === "own" ? "" : String(Math.round(mark.prob * 100))),
        h("span", { class: "sl-row-text", dir: "auto" }, shorten(mark.text, 80)),
        mark.note ? h("span", { title: mark.note }, "✎") : "",
        mark.label ? h("span", { class: "sl-label" }, mark.label) : "",
        h("span", { class: "sl-row-by" }, mark.members.length > 1 ? `×${mark.members.length}` : ""));
        node.style.top = `${index * ROW}px`;
        return node;
    }

    scrollList(index) {
        const top = index * ROW;
        const { scrollTop, clientHeight } = this.list;
        if (top < scrollTop || top + ROW > scrollTop + clientHeight) {
            this.listSpace.style.height = `${this.rows.length * ROW}px`;
            this.list.scrollTop = top - clientHeight / 2 + ROW / 2;
        }
    }

    // -- places in the text

    /** The DOM position of UTF-16 unit `at`. */
    position(at) {
        const element = this.elements[this.editor.item.text.paragraphIndex(at)];
        for (const child of element.childNodes) {
            const content = child.nodeType === Node.TEXT_NODE ? child : child.firstChild;
            if (at <= content.slStart + content.length) return { node: content, offset: Math.max(0, at - content.slStart) };
        }
        return { node: element.lastChild?.lastChild ?? element.lastChild ?? element, offset: element.lastChild?.textContent.length ?? 0 };
    }

    /** The UTF-16 unit of a DOM position in the answer, or null outside it. */
    unitOf(node, offset) {
        if (!this.text.contains(node)) return null;
        if (node.slStart !== undefined) return node.slStart + offset;
        const { paragraphs } = this.editor.item.text;
        const child = node.childNodes[offset] ?? null;
        const at = child ?? node;
        const inside = at.slStart !== undefined ? at : firstText(at);
        if (inside) return child ? inside.slStart : lastText(at).slStart + lastText(at).length;
        const element = at.closest?.(".sl-p") ?? at.querySelector?.(".sl-p");
        return element ? paragraphs[element.slIndex].start : null;
    }

    unitAtPoint(x, y) {
        const place = document.caretPositionFromPoint
            ? document.caretPositionFromPoint(x, y)
            : rangePlace(document.caretRangeFromPoint(x, y));
        return place ? this.unitOf(place.offsetNode, place.offset) : null;
    }

    rectAt(at) {
        const { node, offset } = this.position(at);
        const range = document.createRange();
        range.setStart(node, offset);
        range.collapse(true);
        const rect = range.getClientRects()[0];
        if (rect) return rect;
        const element = node.nodeType === Node.TEXT_NODE ? node.parentElement : node;
        const box = element.getBoundingClientRect();
        const right = getComputedStyle(element).direction === "rtl";
        return new DOMRect(right ? box.right : box.left, box.top, 0, Math.min(box.height, 24));
    }

    isRightToLeft(at) {
        this.flush();
        const element = this.elements[this.editor.item.text.paragraphIndex(at)];
        return getComputedStyle(element).direction === "rtl";
    }

    /** Where the caret lands one line up or down. */
    lineAway(key) {
        this.flush();
        const { caret, item } = this.editor;
        const down = key === "ArrowDown";
        const rect = this.rectAt(caret);
        for (let far = 0.75; far < 3; far += 0.5) {
            const y = down ? rect.bottom + rect.height * far : rect.top - rect.height * far;
            const unit = this.unitAtPoint(rect.left + 1, y);
            if (unit !== null && unit !== caret && (unit > caret) === down) return item.text.snapGrapheme(unit, false);
        }
        return down ? item.text.paragraphAt(caret).next : Math.max(0, item.text.paragraphAt(caret).start - 1);
    }

    caret({ scroll = false } = {}) {
        Object.assign(this.todo, { caret: true, scrollCaret: this.todo.scrollCaret || scroll });
        this.schedule();
    }

    /** Draw caret and selection; the selection is the browser's own, so readers know of it. */
    paintCaret() {
        const range = this.editor.range();
        if (range || this.selecting) this.select(range);
        this.caretMark.hidden = document.activeElement !== this.answer;
        if (!this.caretMark.hidden) {
            const rect = this.rectAt(this.editor.caret);
            this.put(this.caretMark, rect.left, rect.top);
            this.caretMark.style.height = `${rect.height || 20}px`;
        }
        this.placeHandles();
    }

    select(range) {
        const selection = document.getSelection();
        this.selecting = range !== null;
        if (!range) return selection.removeAllRanges();
        const [from, to] = [this.position(range.start), this.position(range.end)];
        return selection.setBaseAndExtent(from.node, from.offset, to.node, to.offset);
    }

    put(node, left, top) {
        const box = this.answer.getBoundingClientRect();
        node.style.left = `${left - box.left + this.answer.scrollLeft}px`;
        node.style.top = `${top - box.top + this.answer.scrollTop}px`;
    }

    placeHandles() {
        const mark = this.editor.focused;
        for (const handle of this.handles) {
            handle.hidden = !mark || !this.pointing;
            if (handle.hidden) continue;
            const rect = this.rectAt(handle.dataset.side === "start" ? mark.start : mark.end);
            this.put(handle, rect.left, rect.bottom);
            handle.style.setProperty("--sl-line-height", `${rect.height || 20}px`);
        }
    }

    /** The small toolbar at the span that was clicked. */
    placeTools() {
        const mark = this.editor.focused;
        this.tools.hidden = !mark || !this.pointing;
        if (this.tools.hidden) return;
        this.tools.replaceChildren(...this.toolButtons(mark), this.labelChoice(mark));
        const rect = this.rectAt(Math.max(mark.start, Math.min(mark.end, this.editor.caret)));
        const width = this.tools.offsetWidth;
        const box = this.answer.getBoundingClientRect();
        this.put(this.tools, Math.max(box.left + 4, Math.min(rect.left, box.right - width - 20)), rect.bottom + 8);
    }

    /** What can be done to a mark, as buttons. */
    toolButtons(mark) {
        const commands = {
            own: [["Remove", "remove"], ["Comment", "comment"]],
            open: [["Accept", "accept"], ["Reject", "reject"], ["Comment", "comment"]],
            rejected: [["Accept", "accept"]],
        }[mark.kind];
        return commands.map(([name, command]) => this.button(name, command));
    }

    labelChoice(mark) {
        const select = h("select", { "aria-label": "Label", class: "sl-choice" },
            h("option", { value: "" }, "no label"),
            ...this.editor.labels.map((label) => h("option", { value: label }, label)));
        select.value = this.editor.labels.includes(mark.label) ? mark.label : "";
        select.addEventListener("change", () => {
            this.editor.label(select.value || null);
            this.answer.focus({ preventScroll: true });
        });
        return select;
    }

    /** Bring the text at `at` into the middle if it is not well within sight. */
    scrollTo(at, margin = 0.08) {
        for (let round = 0; round < 2; round += 1) { // the first round may lay out what was skipped
            const rect = this.rectAt(at);
            const box = this.answer.getBoundingClientRect();
            const room = box.height * margin;
            if (rect.top >= box.top + room && rect.bottom <= box.bottom - room) break;
            this.answer.scrollTop += rect.top - box.top - box.height * 0.4;
        }
    }

    // -- what comes from the person

    listen() {
        this.listening = new AbortController();
        const { signal } = this.listening;
        const on = (target, type, act, options = {}) => target.addEventListener(type, act, { signal, ...options });
        on(this.root, "keydown", (event) => this.key(event));
        on(this.answer, "pointerdown", (event) => this.press(event));
        on(document, "pointerup", (event) => this.release(event));
        on(this.answer, "focus", () => this.editor.item && this.caret());
        on(this.answer, "blur", () => this.editor.item && this.caret());
        on(this.list, "scroll", () => this.paintList(), { passive: true });
        on(this.list, "click", (event) => {
            const row = event.target.closest("[data-mark]");
            if (!row) return;
            this.editor.focusOn(row.dataset.mark);
            this.answer.focus({ preventScroll: true });
        });
        on(this.field, "submit", (event) => {
            event.preventDefault();
            this.answered(this.field.querySelector("input").value);
        });
        on(this.sheet, "click", () => this.help(false));
        on(window, "beforeunload", () => this.editor.outbox.store());
        on(window, "resize", () => {
            this.fill();
            if (this.editor.item) this.caret();
        });
        for (const handle of this.handles) on(handle, "pointerdown", (event) => this.dragHandle(event, handle));
    }

    key(event) {
        event.stopPropagation(); // Streamlit has letters of its own: r reruns, c clears the cache
        if (event.isComposing) return;
        if (this.field.contains(event.target)) return this.fieldKey(event);
        if (["INPUT", "TEXTAREA", "SELECT"].includes(event.target.tagName)) return undefined;
        const spec = specOf(event);
        const inText = event.target === this.answer;
        if (!inText && ELSEWHERE.has(event.key)) return undefined;
        if (!this.sheet.hidden && !["?", "Escape"].includes(spec)) return undefined;
        this.pointing = false;
        this.tools.hidden = true;
        const leaving = this.leaving && event.key === "Tab";
        if (event.key !== "Shift") this.leaving = inText && spec === "Escape";
        if (leaving) return undefined; // Escape, then Tab: out of the text, however many spans it has
        for (const command of this.editor.bindings.get(spec) ?? []) {
            if (event.repeat && ONCE.has(command)) return event.preventDefault(); // a key held down
            if (!this.editor.run(command, event, event.key)) continue;
            event.preventDefault();
            return undefined;
        }
        return undefined;
    }

    press(event) {
        if (this.tools.contains(event.target) || this.handles.includes(event.target) || event.button !== 0) return;
        this.pressed = { x: event.clientX, y: event.clientY };
        this.root.classList.add("sl-dragging");
    }

    release(event) {
        this.root.classList.remove("sl-dragging");
        if (!this.pressed || !this.editor.item) return;
        const moved = Math.hypot(event.clientX - this.pressed.x, event.clientY - this.pressed.y) > 3;
        this.pressed = null;
        setTimeout(() => this.pointed(event, moved), 0); // the browser's selection is final only then
    }

    pointed(event, moved) {
        this.pointing = true;
        const selection = document.getSelection();
        const range = selection.rangeCount > 0 ? selection.getRangeAt(0) : null;
        const touches = range?.intersectsNode(this.text) ?? false;
        const start = touches ? this.unitOf(range.startContainer, range.startOffset) ?? 0 : null;
        const end = touches ? this.unitOf(range.endContainer, range.endOffset) ?? this.editor.item.text.length : null;
        if (touches && !range.collapsed) {
            this.drag(start, end, event.altKey || event.shiftKey);
        } else if (!moved) this.click(event, start);
        this.answer.focus({ preventScroll: true });
    }

    drag(start, end, exactly) {
        const { text } = this.editor.item;
        const range = exactly ? text.snapGraphemes(start, end) : text.snapWords(start, end);
        document.getSelection().removeAllRanges();
        if (!range) return;
        this.editor.caret = range.end;
        if (this.editor.draw(range.start, range.end)) this.say(`Marked ${quote(text.slice(range.start, range.end))}.`);
    }

    /** A click chooses the shortest span under it; again, the next longer one. */
    click(event, at) {
        const segment = event.target.closest?.(".sl-seg");
        const { editor } = this;
        editor.dropSelection();
        if (at !== null) editor.caret = editor.item.text.snapGrapheme(at, false);
        const under = (segment?.slMarks ?? []).map((id) => editor.marks.get(id)).filter(Boolean)
            .sort((one, two) => (one.end - one.start) - (two.end - two.start));
        const before = editor.focus;
        const index = under.findIndex((mark) => mark.id === before);
        editor.focus = under.length === 0 ? null : under[(index + 1) % under.length].id;
        this.focusChanged({ scroll: false });
        if (editor.focused) this.say(describe(editor.focused));
    }

    dragHandle(event, handle) {
        event.preventDefault();
        const mark = this.editor.focused;
        const { text } = this.editor.item;
        let [start, end] = [mark.start, mark.end];
        const move = (moved) => {
            const at = this.unitAtPoint(moved.clientX, moved.clientY);
            if (at === null) return;
            const exactly = moved.altKey || moved.shiftKey;
            if (handle.dataset.side === "start" && at < end) start = exactly ? text.snapGrapheme(at, false) : wordEdge(text, at, "start");
            if (handle.dataset.side === "end" && at > start) end = exactly ? text.snapGrapheme(at, true) : wordEdge(text, at, "end");
            if (start < end) this.select({ start, end });
        };
        const up = () => {
            handle.removeEventListener("pointermove", move);
            handle.style.pointerEvents = "";
            this.select(null);
            if (start !== mark.start || end !== mark.end) this.editor.resize(start, end);
            this.placeHandles();
        };
        handle.setPointerCapture(event.pointerId);
        handle.addEventListener("pointermove", move);
        handle.addEventListener("pointerup", up, { once: true });
        handle.addEventListener("pointercancel", up, { once: true });
    }

    // -- asking, telling

    ask(title, text, done) {
        this.asked = done;
        const input = h("input", { type: "text", "aria-label": title, maxlength: "10000", dir: "auto" });
        input.value = text;
        const cancel = h("button", { type: "button", class: "sl-button" }, "Cancel", h("kbd", {}, "Esc"));
        cancel.addEventListener("click", () => this.answered(null));
        this.field.replaceChildren(h("label", {}, title), input,
            h("button", { type: "submit", class: "sl-button sl-primary" }, "Save", h("kbd", {}, "↵")), cancel);
        this.field.hidden = false;
        input.focus();
        input.select();
        return true;
    }

    fieldKey(event) {
        if (event.key !== "Escape") return;
        event.preventDefault();
        this.answered(null);
    }

    answered(typed) {
        const done = this.asked;
        this.asked = null;
        this.field.hidden = true;
        this.answer.focus({ preventScroll: true });
        if (typed !== null) done?.(typed);
    }

    help(show = this.sheet.hidden) {
        this.sheet.hidden = !show;
        if (!show) return this.answer.focus({ preventScroll: true });
        const groups = Map.groupBy
            ? Map.groupBy(this.editor.keys, (key) => key.group)
            : grouped(this.editor.keys);
        this.sheet.replaceChildren(h("div", { class: "sl-sheet-inner" }, h("h2", {}, "Keys"),
            h("div", { class: "sl-sheet-groups" }, ...[...groups].map(([group, keys]) => h("section", {},
                h("h3", {}, group),
                h("dl", {}, ...keys.flatMap((key) => [
                    h("dt", {}, ...key.keys.map((spec) => h("kbd", {}, keyName(spec)))), h("dd", {}, key.does),
                ]))))),
            h("p", { class: "sl-quiet" }, "With the mouse: drag over text to mark it (words; hold Alt or Shift for "
                + "characters), click a span for its tools, drag its ends to resize it.")));
        this.sheet.focus();
        return true;
    }

    escape() {
        if (!this.sheet.hidden) return this.help(false);
        if (this.trace.node.contains(document.activeElement)) return this.trace.close();
        if (this.editor.selection) return this.editor.dropSelection();
        if (this.editor.focus) return this.editor.focusOn(null, { scroll: false });
        return true;
    }

    /** Tell a screen reader what happened; with `loudly`, everybody. */
    say(message, loudly = false) {
        this.live.textContent = message === this.live.textContent ? `${message}\u00a0` : message;
        if (loudly) {
            this.toast.textContent = message;
            this.toast.hidden = false;
            clearTimeout(this.toasting);
            this.toasting = setTimeout(() => (this.toast.hidden = true), 3500);
        }
        return true;
    }
}

const CHUNK = 2000;
const LINE = 60;
const ROW = 30;
const LANES = 4;
const NO_MARKS = [];
const OPENS = new Set(["help", "trace"]); // what takes the focus with it
const ONCE = new Set(["done", "skip", "acceptAll", "nextItem", "previousItem", "help", "trace"]);
const ELSEWHERE = new Set([
    "Tab", "Enter", " ", "ArrowUp", "ArrowDown", "ArrowLeft", "ArrowRight", "Home", "End", "PageUp", "PageDown",
]);
const KIND_WORDS = { detector: "detector", vote: "vote", gold: "gold labels", person: "person" };
const STANCE_WORDS = { supports: "supports it", refutes: "refutes it", closest: "closest passage" };

/** What an annotator is, unless the name says so already. */
function kindOf({ name, kind }) {
    const words = KIND_WORDS[kind] ?? "";
    return words.split(" ").includes(name) ? "" : words;
}

/** Build an element; strings become text nodes, never markup. */
function h(tag, attributes, ...children) {
    const node = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
    node.append(...children);
    return node;
}

/** Height a chunk will have about, so that skipping its layout does not make scrolling jump. */
function sizeHint(chunk, characters) {
    chunk.style.containIntrinsicBlockSize = `auto ${Math.ceil(characters / 75) * 30}px`;
}

/** Marks by paragraph, each with the lane in which its underline runs. */
function spread(marks, text) {
    const lanes = [];
    const found = new Map();
    for (const mark of marks) {
        let lane = lanes.findIndex((end) => end <= mark.start);
        if (lane < 0) lane = lanes.length;
        lanes[lane] = mark.end;
        const entry = { mark, lane: lane % LANES };
        for (let index = text.paragraphIndex(mark.start); index < text.paragraphs.length; index += 1) {
            const paragraph = text.paragraphs[index];
            if (paragraph.start >= mark.end) break;
            if (paragraph.end <= mark.start) continue;
            const here = found.get(index);
            if (here) here.push(entry);
            else found.set(index, [entry]);
        }
    }
    return found;
}

/** Two underlines fit between lines of text; more need more room, or they run into the next line. */
function lineHeight(here) {
    const deepest = here.reduce((most, { lane }) => Math.max(most, lane), 0);
    return deepest > 1 ? `calc(2em + ${(deepest - 1) * 5}px)` : "";
}

function signatureOf(mark, lane, focus) {
    return `${mark.id} ${mark.kind} ${mark.start} ${mark.end} ${mark.prob} ${mark.label} ${lane} ${mark.id === focus}`;
}

/** Cut a paragraph wherever a mark begins or ends. */
function piecesOf(paragraph, here) {
    if (paragraph.start === paragraph.end) return [];
    const cuts = new Set([paragraph.start, paragraph.end]);
    for (const { mark } of here) {
        cuts.add(Math.max(mark.start, paragraph.start));
        cuts.add(Math.min(mark.end, paragraph.end));
    }
    const sorted = [...cuts].sort((one, two) => one - two);
    const pieces = [];
    let from = 0;
    for (let index = 0; index + 1 < sorted.length; index += 1) {
        const [start, end] = [sorted[index], sorted[index + 1]];
        while (from < here.length && here[from].mark.end <= start) from += 1;
        const over = [];
        for (let at = from; at < here.length && here[at].mark.start < end; at += 1) {
            if (here[at].mark.end > start) over.push(here[at]);
        }
        pieces.push({ start, end, over });
    }
    return pieces;
}

function segmentClasses({ start, end, over }, focus) {
    const classes = ["sl-seg"];
    const kinds = new Set(over.map(({ mark }) => mark.kind));
    if (kinds.has("rejected") && kinds.size === 1) classes.push("sl-struck");
    if (kinds.has("own")) classes.push("sl-own");
    const focused = over.find(({ mark }) => mark.id === focus)?.mark;
    if (focused) classes.push("sl-focus");
    if (focused?.start === start) classes.push("sl-first");
    if (focused?.end === end) classes.push("sl-last");
    return classes.join(" ");
}

/** Tint for how likely, one underline per mark: solid own, dashed suggested, dotted rejected. */
function segmentStyle({ over }) {
    const lines = [];
    let doubt = 1;
    let deepest = 0;
    for (const { mark, lane } of over) {
        const thick = mark.kind === "own" ? 3 : mark.prob >= 0.67 ? 3 : mark.prob >= 0.34 ? 2 : 1;
        lines.push(`${LINES[mark.kind]} 0 calc(100% - ${lane * 5}px) / 100% ${thick}px no-repeat`);
        if (mark.kind !== "rejected") doubt *= 1 - (mark.kind === "own" ? 0.6 : mark.prob * 0.9);
        deepest = Math.max(deepest, lane);
    }
    const own = over.some(({ mark }) => mark.kind === "own");
    const tint = doubt === 1 ? 0 : Math.round(6 + (1 - doubt) * 34);
    const colour = `color-mix(in srgb, var(--sl-${own ? "own" : "open"}) ${tint}%, transparent)`;
    return `background: ${lines.join(", ")}, linear-gradient(${colour}, ${colour}); padding-bottom: ${deepest * 5 + 2}px`;
}

const LINES = {
    own: "linear-gradient(var(--sl-own), var(--sl-own))",
    open: "repeating-linear-gradient(90deg, var(--sl-open) 0 6px, transparent 6px 9px)",
    rejected: "repeating-linear-gradient(90deg, var(--sl-rejected) 0 1px, transparent 1px 4px)",
};

function passageHead(passage, index) {
    const title = passage.title ?? `Passage ${index + 1}`;
    const web = /^https?:\/\//i.test(passage.url ?? "");
    const name = web
        ? h("a", { href: passage.url, target: "_blank", rel: "noopener noreferrer" }, title)
        : h("span", {}, title);
    const rest = [passage.date, web ? null : passage.url].filter(Boolean).join(" · ");
    return h("h4", { dir: "auto" }, name, rest ? h("small", {}, ` ${rest}`) : "");
}

function voteLine(vote) {
    const share = vote.exact ? "exactly this" : `${percent(vote.covered)} of it`;
    return h("li", {}, h("b", {}, vote.annotator), ` ${percent(vote.prob)}, ${share}`,
        vote.label ? `, ${vote.label}` : "", vote.note ? h("i", { dir: "auto" }, ` — ${vote.note}`) : "");
}

function meter(prob) {
    const bar = h("span", { class: "sl-meter", "aria-hidden": "true" }, h("span", {}));
    bar.firstChild.style.width = percent(prob).replace(" ", "");
    return bar;
}

function stanceWords(quote) {
    return ` ${STANCE_WORDS[quote.stance]}${quote.note ? `: ${quote.note}` : ""} `;
}

function distinct(quotes) {
    return [...new Map(quotes.map((quote) => [`${quote.passage} ${quote.start} ${quote.end}`, quote])).values()];
}

function centre(box, node) {
    const [outer, inner] = [box.getBoundingClientRect(), node.getBoundingClientRect()];
    if (inner.top < outer.top || inner.bottom > outer.bottom) {
        box.scrollTop += inner.top - outer.top - outer.height / 3;
    }
}

function firstText(node) {
    return document.createTreeWalker(node, NodeFilter.SHOW_TEXT).nextNode();
}

function lastText(node) {
    let last = node;
    while (last.lastChild) last = last.lastChild;
    return last;
}

function rangePlace(range) {
    return range ? { offsetNode: range.startContainer, offset: range.startOffset } : null;
}

function wordEdge(text, at, side) {
    const part = text.partAt(side === "start" ? at : Math.max(0, at - 1));
    return part?.word ? part[side] : at;
}

function shorten(text, most) {
    const characters = [...text.slice(0, most * 2)];
    return characters.length > most ? `${characters.slice(0, most - 1).join("")}…` : characters.join("");
}

function plural(count, word) {
    return `${count} ${word}${count === 1 ? "" : "s"}`;
}

function keyName(spec) {
    const names = {
        Enter: "↵", ArrowLeft: "←", ArrowRight: "→", ArrowUp: "↑", ArrowDown: "↓", Escape: "Esc",
        Delete: "Del", Backspace: "⌫", PageUp: "PgUp", PageDown: "PgDn",
    };
    return spec.split("+").map((part) => names[part] ?? (spec.length > 1 && /^[a-z]$/.test(part) ? part.toUpperCase() : part)).join("+");
}

function grouped(keys) {
    const groups = new Map();
    for (const key of keys) groups.set(key.group, [...(groups.get(key.group) ?? []), key]);
    return groups;
}

/** Relative luminance of a CSS colour such as #1a2b3c or rgb(…); 1 if it is neither. */
function luminance(colour) {
    const hex = /^#([0-9a-f]{2})([0-9a-f]{2})([0-9a-f]{2})/i.exec(colour);
    const parts = hex ? hex.slice(1).map((part) => parseInt(part, 16)) : (colour.match(/[\d.]+/g) ?? []).slice(0, 3).map(Number);
    if (parts.length < 3) return 1;
    const [red, green, blue] = parts.map((part) => (part / 255) ** 2.2);
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

// ------------------------------------------------------------------------------------ Item

/** One item as it is shown: its text, its suggestions, and the reviewer's log on it. */
class Item {
    constructor(payload) {
        this.payload = payload;
        this.id = payload.id;
        this.text = new Text(payload.answer, payload.lang);
        this.history = new History(payload.snapshot, payload.operations, this.text.points);
        this.groups = this.group(payload.annotators);
    }

    /** Suggestions of the same characters by several annotators become one. */
    group(annotators) {
        const groups = new Map();
        for (const annotator of annotators) {
            for (const span of annotator.spans) {
                const key = `${span.start}-${span.end}`;
                let group = groups.get(key);
                if (!group) {
                    group = {
                        key, from: span.start, to: span.end, members: [],
                        start: this.text.unit(span.start), end: this.text.unit(span.end),
                    };
                    group.text = this.text.slice(group.start, group.end);
                    groups.set(key, group);
                }
                group.members.push({ annotator: annotator.name, kind: annotator.kind, ...span });
            }
        }
        for (const group of groups.values()) group.members.sort((one, two) => two.prob - one.prob);
        return [...groups.values()].sort(byPlace);
    }

    /** Annotators whose spans overlap [start, end), with the share of it that they cover. */
    votes(start, end, hidden) {
        const votes = new Map();
        for (const group of this.groups) {
            if (group.start >= end) break;
            if (group.end <= start) continue;
            const covered = Math.min(end, group.end) - Math.max(start, group.start);
            for (const member of group.members) {
                if (hidden.has(member.annotator)) continue;
                const vote = votes.get(member.annotator)
                    ?? { annotator: member.annotator, prob: 0, covered: 0, exact: false, label: null, note: null };
                vote.prob = Math.max(vote.prob, member.prob);
                vote.covered += covered;
                vote.exact ||= group.start === start && group.end === end;
                vote.label ??= member.label ?? null;
                vote.note ??= member.note ?? null;
                votes.set(member.annotator, vote);
            }
        }
        for (const vote of votes.values()) vote.covered = Math.min(1, vote.covered / (end - start));
        return [...votes.values()].sort((one, two) => two.covered - one.covered || two.prob - one.prob);
    }
}

/** A reload comes back to this item, even one that comes before Python's word on it. */
function leaveInUrl(item) {
    const url = new URL(location.href);
    url.searchParams.set("item", item);
    history.replaceState(history.state, "", url);
}

/** A name for dataset, reviewer and filters, whichever item a link asked for. */
function queueOf(place) {
    return JSON.stringify({ ...JSON.parse(place.id), entry: null });
}

function byPlace(one, two) {
    return one.start - two.start || one.end - two.end;
}

/** What is to be seen: own spans, open and rejected suggestions, by id, in text order. */
function marksOf(item, hidden) {
    const { state } = item.history;
    const marks = [];
    const taken = new Set();
    for (const [id, span] of state.spans) {
        if (span.origin) taken.add(span.origin.key);
        marks.push(ownMark(item, id, span));
    }
    const refused = new Map(state.rejected.map((span) => [originKey(span), span]));
    for (const group of item.groups) {
        const members = hidden.size ? group.members.filter((member) => !hidden.has(member.annotator)) : group.members;
        const keys = group.members.map((member) => memberKey(member));
        const gone = keys.filter((key) => refused.has(key));
        for (const key of gone) refused.delete(key);
        if (keys.some((key) => taken.has(key))) continue;
        if (members.length > 0) marks.push(groupMark(group, members, gone.length > 0 ? "rejected" : "open"));
    }
    for (const span of refused.values()) marks.push(strangerMark(item, span));
    marks.sort(byPlace);
    return new Map(marks.map((mark) => [mark.id, mark]));
}

function ownMark(item, id, span) {
    const [start, end] = [item.text.unit(span.start), item.text.unit(span.end)];
    return {
        id: `own:${id}`, kind: "own", span: id, start, end, text: item.text.slice(start, end),
        prob: 1, label: span.label ?? null, note: span.note ?? null, members: [],
        origin: span.origin?.mark ?? null, evidence: span.evidence ?? [],
        edited: span.origin ? span.origin.key !== originKey(span) : false,
    };
}

function groupMark(group, members, kind) {
    const [top] = members;
    return {
        id: `sug:${group.key}`, kind, start: group.start, end: group.end, text: group.text,
        prob: top.prob, label: members.find((member) => member.label)?.label ?? null,
        note: members.find((member) => member.note)?.note ?? null, members,
        evidence: members.flatMap((member) => member.evidence ?? []),
        likely: members.some((member) => member.likely),
        best: {
            source: top.annotator, start: group.from, end: group.to, prob: top.prob, label: top.label ?? null,
            evidence: distinct(members.flatMap((member) => member.evidence ?? [])),
        },
    };
}

function strangerMark(item, span) {
    const [start, end] = [item.text.unit(span.start), item.text.unit(span.end)];
    return {
        id: `rej:${originKey(span)}`, kind: "rejected", start, end, text: item.text.slice(start, end),
        prob: span.prob, label: span.label ?? null, note: span.note ?? null, members: [],
        evidence: span.evidence ?? [],
        best: {
            source: span.source ?? "unknown", start: span.start, end: span.end, prob: span.prob,
            label: span.label ?? null, evidence: span.evidence ?? [],
        },
    };
}

function memberKey(member) {
    return originKey({ ...member, source: member.annotator });
}

function originKey(span) {
    return JSON.stringify([span.source ?? null, span.start, span.end, span.label ?? null]);
}

// --------------------------------------------------------------------------------- History

/**
 * The operation log of one annotation and the state it leads to; mirrors spanlab/oplog.py.
 * Offsets in here are code points, as stored.
 */
export class History {
    /** @param {number} length of the answer in code points */
    constructor(snapshot, operations, length) {
        this.length = length;
        this.version = 0;
        this.edits = [];
        this.undone = [];
        this.checkpoints = [{ depth: 0, state: ReviewState.of(snapshot) }];
        this.state = this.checkpoints[0].state.copy();
        for (const operation of operations) this.push(operation);
    }

    get canUndo() {
        return this.edits.length > 0;
    }

    get canRedo() {
        return this.undone.length > 0;
    }

    /** Append one operation. Throws, changing nothing, if it does not fit. */
    push(operation) {
        if (operation.kind === "undo") this.undo();
        else if (operation.kind === "redo") this.redo();
        else {
            this.edit(operation);
            this.undone = [];
        }
        this.version += 1;
    }

    edit(operation) {
        EDITS[operation.kind](this.state, operation, this.length);
        this.edits.push(operation);
        if (this.edits.length % CHECKPOINT_EVERY === 0) {
            this.checkpoints.push({ depth: this.edits.length, state: this.state.copy() });
        }
    }

    undo() {
        if (!this.canUndo) return;
        this.undone.push(this.edits.pop());
        while (this.checkpoints.at(-1).depth > this.edits.length) this.checkpoints.pop();
        const { depth, state } = this.checkpoints.at(-1);
        this.state = state.copy();
        for (const edit of this.edits.slice(depth)) EDITS[edit.kind](this.state, edit, this.length);
    }

    redo() {
        if (this.canRedo) this.edit(this.undone.pop());
    }
}

const CHECKPOINT_EVERY = 64;

/** A reviewer's spans by id, in the order in which they were made. */
class ReviewState {
    static of(snapshot) {
        const state = new ReviewState();
        state.spans = new Map(Object.entries(snapshot.spans).map(([id, span]) => [id, withOrigin(span)]));
        state.rejected = snapshot.rejected;
        state.status = snapshot.status;
        state.note = snapshot.note ?? null;
        return state;
    }

    copy() {
        const state = new ReviewState();
        state.spans = new Map(this.spans);
        state.rejected = this.rejected;
        state.status = this.status;
        state.note = this.note;
        return state;
    }
}

function withOrigin(span) {
    if (!span.source) return span;
    const mark = {
        source: span.source, start: span.start, end: span.end, prob: span.prob, label: span.label ?? null,
        evidence: span.evidence ?? [],
    };
    return { ...span, origin: { key: originKey(span), mark } };
}

/** What each edit does to a state; each checks before it changes anything. */
const EDITS = {
    accept: (state, op, length) => take(state, [[op.span, op.mark]], length),
    "accept-all": (state, op, length) => {
        if (op.spans.length !== op.marks.length) {
            throw new Error(`accept-all has ${op.spans.length} ids for ${op.marks.length} suggestions`);
        }
        take(state, op.spans.map((id, index) => [id, op.marks[index]]), length);
    },
    reject: (state, { mark }, length) => {
        checkExtent(mark.start, mark.end, length);
        const key = originKey(mark);
        for (const [id, span] of state.spans) if (originKey(span) === key) state.spans.delete(id);
        const refused = { ...suggested(mark), prob: mark.prob ?? 1 };
        state.rejected = [...state.rejected.filter((span) => originKey(span) !== key), refused];
    },
    add: (state, op, length) => {
        if (state.spans.has(op.span)) throw new Error(`span id '${op.span}' is already in use`);
        checkExtent(op.start, op.end, length);
        state.spans.set(op.span, { start: op.start, end: op.end, prob: 1, label: op.label ?? null });
    },
    remove: (state, op) => {
        ownSpan(state, op.span);
        state.spans.delete(op.span);
    },
    resize: (state, op, length) => {
        checkExtent(op.start, op.end, length);
        change(state, op.span, { start: op.start, end: op.end });
    },
    relabel: (state, op) => change(state, op.span, { label: op.label ?? null }),
    note: (state, op) => {
        const text = op.text || null;
        if (op.span === null || op.span === undefined) state.note = text;
        else change(state, op.span, { note: text });
    },
    status: (state, op) => {
        state.status = op.status;
    },
};

function take(state, taken, length) {
    const ids = new Set();
    for (const [id, mark] of taken) {
        if (state.spans.has(id) || ids.has(id)) throw new Error(`span id '${id}' is already in use`);
        checkExtent(mark.start, mark.end, length);
        ids.add(id);
    }
    const keys = new Set();
    for (const [id, mark] of taken) {
        const key = originKey(mark);
        state.spans.set(id, { ...suggested(mark), origin: { key, mark } });
        keys.add(key);
    }
    if (state.rejected.length > 0) state.rejected = state.rejected.filter((span) => !keys.has(originKey(span)));
}

function suggested(mark) {
    return {
        start: mark.start, end: mark.end, prob: 1, label: mark.label ?? null, source: mark.source,
        evidence: mark.evidence ?? [],
    };
}

function change(state, id, update) {
    state.spans.set(id, { ...ownSpan(state, id), ...update });
}

function ownSpan(state, id) {
    const span = state.spans.get(id);
    if (!span) throw new Error(`there is no span with the id '${id}'`);
    return span;
}

function checkExtent(start, end, length) {
    if (!(start >= 0 && start < end && end <= length)) {
        throw new Error(`[${start}, ${end}) is not a part of the answer's ${length} characters`);
    }
}

/** The edits left in force among `operations` once undo and redo have done their work. */
function inForce(operations) {
    const stack = [];
    let undone = [];
    for (const operation of operations) {
        if (operation.kind === "undo") {
            if (stack.length > 0) undone.push(stack.pop());
        } else if (operation.kind === "redo") {
            if (undone.length > 0) stack.push(undone.pop());
        } else {
            stack.push(operation);
            undone = [];
        }
    }
    return stack;
}

// ---------------------------------------------------------------------------------- Outbox

/**
 * All writes that Python has not answered yet. They also lie in localStorage, so that neither a
 * reload nor a dead server loses them; (session, seq) makes sending one twice harmless.
 */
class Outbox {
    constructor() {
        this.session = randomId();
        this.seq = 0;
        this.writes = [];
        this.attempt = 0;
        this.waiting = false;
        this.sentAt = 0;
        this.offline = false;
        this.place = null;
        this.onChange = () => {};
        this.exchange = () => {};
        this.lock();
    }

    add(write) {
        this.seq += 1;
        const held = this.holds(write.item);
        this.writes.push({ session: this.session, seq: this.seq, ...write, ...(held ? { held } : {}) });
        this.store();
        this.send();
    }

    toSend() {
        return this.writes.filter((write) => !write.held);
    }

    pending(item) {
        return this.writes.filter((write) => this.concerns(write, item) && !write.held).length;
    }

    /** Say whether writes of this item were refused and wait for the person's decision. */
    holds(item) {
        return this.writes.some((write) => this.concerns(write, item) && write.held);
    }

    /** Writes of one log; datasets may share item ids, and people share a browser. */
    concerns(write, item, place = this.place) {
        return write.item === item && write.dataset === place?.dataset && write.reviewer === place.reviewer;
    }

    /** Start an exchange unless one is under way; its end starts the next if there is need. */
    send() {
        this.onChange();
        if (this.waiting) return;
        this.waiting = true;
        this.sentAt = performance.now();
        this.attempt += 1;
        queueMicrotask(() => this.exchange());
    }

    /** Python's word on one write: stored, or refused with the reason. */
    settle({ session, seq, stored, reason, stale }) {
        const index = this.writes.findIndex((write) => write.session === session && write.seq === seq);
        if (index < 0) return;
        if (stored) {
            this.writes.splice(index, 1);
            return;
        }
        const refused = this.writes[index];
        Object.assign(refused, { reason, stale });
        for (const write of this.writes) {
            if (this.concerns(write, refused.item, refused)) write.held = true;
        }
    }

    answered(attempt) {
        if (attempt !== this.attempt) return;
        this.waiting = false;
        this.offline = false;
        this.store();
        this.onChange();
    }

    /** No answer in time: the server is gone or the message was lost; send again. */
    retry() {
        if (!this.waiting || performance.now() - this.sentAt < PATIENCE) return;
        this.offline = true;
        this.waiting = false;
        this.send();
    }

    /** Give up the writes of one item and return their operations. */
    drop(item) {
        const dropped = this.writes.filter((write) => this.concerns(write, item));
        this.writes = this.writes.filter((write) => !this.concerns(write, item));
        this.store();
        this.onChange();
        return dropped.map((write) => write.op);
    }

    /**
     * Take over what pages that are gone left behind.
     *
     * @returns the items here that gained writes, and whether this tab's last page still lives
     */
    async adopt() {
        const items = new Set();
        let dying = false;
        for (const key of Object.keys(localStorage)) {
            if (!key.startsWith(STORED) || key === STORED + this.session) continue;
            if (!(await this.isDead(key.slice(STORED.length)))) {
                dying ||= key === STORED + this.before;
                continue;
            }
            const known = new Set(this.writes.map((write) => `${write.session} ${write.seq}`));
            for (const { held, reason, stale, ...write } of parsed(localStorage.getItem(key))) {
                if (known.has(`${write.session} ${write.seq}`)) continue;
                this.writes.push(write);
                if (this.concerns(write, write.item)) items.add(write.item);
            }
            this.store();
            localStorage.removeItem(key);
        }
        return { items: [...items], dying };
    }

    /** A living page holds a lock of its session's name. Without locks: this tab's last page. */
    async isDead(session) {
        if (!navigator.locks) return this.before === session;
        return navigator.locks.request(STORED + session, { ifAvailable: true }, (lock) => lock !== null);
    }

    lock() {
        this.before = sessionStorage.getItem(LAST);
        navigator.locks?.request(STORED + this.session, () => new Promise(() => {}));
        sessionStorage.setItem(LAST, this.session);
    }

    store() {
        try {
            if (this.writes.length === 0) localStorage.removeItem(STORED + this.session);
            else localStorage.setItem(STORED + this.session, JSON.stringify(this.writes));
            this.full = false;
        } catch {
            this.full = true; // storage is full or forbidden: kept in this page only
        }
    }
}

/** The writes that a page left behind; what cannot be read is none. */
function parsed(text) {
    try {
        const writes = JSON.parse(text ?? "[]");
        return Array.isArray(writes) ? writes : [];
    } catch {
        return [];
    }
}

const STORED = "spanlab.outbox.";
const LAST = "spanlab.session";
const PATIENCE = 2500;

// ------------------------------------------------------------------------------------ Text

/** An answer: code points ↔ UTF-16 units, paragraphs, graphemes and words of its language. */
export class Text {
    constructor(whole, lang) {
        this.whole = whole;
        this.length = whole.length;
        this.index();
        this.paragraphs = paragraphsOf(whole);
        const locale = locales(lang);
        this.graphemes = new Intl.Segmenter(locale, { granularity: "grapheme" });
        this.wording = new Intl.Segmenter(locale, { granularity: "word" });
    }

    /** Count code points before every INDEX_EVERY-th unit; without astral characters nothing. */
    index() {
        const { whole } = this;
        this.table = null;
        this.points = whole.length;
        if (!/[\ud800-\udbff][\udc00-\udfff]/.test(whole)) return;
        this.table = [];
        let points = 0;
        for (let unit = 0; unit < whole.length; unit += 1) {
            if (unit % INDEX_EVERY === 0) this.table.push(points);
            if (!isSecondHalf(whole, unit)) points += 1;
        }
        this.points = points;
    }

    /** The UTF-16 unit at which code point `point` begins. */
    unit(point) {
        if (!this.table) return point;
        const slot = lastAtMost(this.table, point);
        let unit = slot * INDEX_EVERY;
        if (isSecondHalf(this.whole, unit)) unit += 1;
        for (let points = this.table[slot]; points < point; points += 1) {
            unit += isSecondHalf(this.whole, unit + 1) ? 2 : 1;
        }
        return unit;
    }

    /** How many code points lie before UTF-16 unit `unit`. */
    point(unit) {
        if (!this.table) return unit;
        const slot = Math.min(Math.floor(unit / INDEX_EVERY), this.table.length - 1);
        let points = this.table[slot];
        for (let at = slot * INDEX_EVERY; at < unit; at += 1) if (!isSecondHalf(this.whole, at)) points += 1;
        return points;
    }

    slice(start, end) {
        return this.whole.slice(start, end);
    }

    paragraphIndex(at) {
        return Math.max(0, lastAtMost(this.paragraphs, at, (paragraph) => paragraph.start));
    }

    paragraphAt(at) {
        return this.paragraphs[this.paragraphIndex(at)];
    }

    /** Boundaries of graphemes within the paragraph at `at`, kept once they were asked for. */
    stops(paragraph) {
        paragraph.stops ??= [
            ...Array.from(this.graphemes.segment(this.slice(paragraph.start, paragraph.end)),
                (part) => paragraph.start + part.index),
            paragraph.end,
        ];
        return paragraph.stops;
    }

    words(paragraph) {
        paragraph.words ??= Array.from(this.wording.segment(this.slice(paragraph.start, paragraph.end)))
            .map((part) => ({
                start: paragraph.start + part.index,
                end: paragraph.start + part.index + part.segment.length,
                word: part.isWordLike,
            }));
        return paragraph.words;
    }

    nextGrapheme(at) {
        const paragraph = this.paragraphAt(at);
        if (at >= paragraph.end) return Math.min(paragraph.next, this.length);
        const stops = this.stops(paragraph);
        return stops[lastAtMost(stops, at) + 1];
    }

    previousGrapheme(at) {
        const index = this.paragraphIndex(at);
        const paragraph = this.paragraphs[index];
        if (at <= paragraph.start) return index === 0 ? 0 : this.paragraphs[index - 1].end;
        const stops = this.stops(paragraph);
        const slot = lastAtMost(stops, at);
        return stops[slot] < at ? stops[slot] : stops[slot - 1];
    }

    graphemeAt(at) {
        return this.slice(at, this.nextGrapheme(at)).trim() || "space";
    }

    /** The grapheme boundary at or before (or with `up`, at or after) `at`. */
    snapGrapheme(at, up) {
        const paragraph = this.paragraphAt(at);
        if (at >= paragraph.end) return at === paragraph.end || !up ? paragraph.end : paragraph.next;
        const stops = this.stops(paragraph);
        const slot = lastAtMost(stops, at);
        return stops[slot] === at || !up ? stops[slot] : stops[slot + 1];
    }

    /** The end of the next word after `at`. */
    nextWord(at) {
        return this.seek(at, 1, (word) => word.end > at, (word) => word.end) ?? this.length;
    }

    nextWordStart(at) {
        return this.seek(at, 1, (word) => word.start > at, (word) => word.start) ?? this.length;
    }

    /** The start of the word before `at`. */
    previousWord(at) {
        return this.seek(at, -1, (word) => word.start < at, (word) => word.start) ?? 0;
    }

    previousWordEnd(at) {
        return this.seek(at, -1, (word) => word.end < at, (word) => word.end) ?? 0;
    }

    seek(at, by, fits, found) {
        for (let index = this.paragraphIndex(at); index >= 0 && index < this.paragraphs.length; index += by) {
            const words = this.words(this.paragraphs[index]).filter((word) => word.word);
            const word = by > 0 ? words.find(fits) : words.findLast(fits);
            if (word) return found(word);
        }
        return null;
    }

    /** The word at `at`, or the one after it. */
    wordAt(at) {
        const word = this.words(this.paragraphAt(at)).find((part) => part.word && part.end > at);
        return word ? [word.start, word.end] : [at, this.nextWord(at)];
    }

    /** Widen [start, end) to whole words and drop white space at its ends; null if none is left. */
    snapWords(start, end) {
        [start, end] = this.trim(start, end);
        if (start >= end) return null;
        const first = this.partAt(start);
        const last = this.partAt(end - 1);
        return this.trimmed(first?.word ? first.start : start, last?.word ? last.end : end);
    }

    /** Move [start, end) out to whole graphemes. */
    snapGraphemes(start, end) {
        return { start: this.snapGrapheme(start, false), end: this.snapGrapheme(end, true) };
    }

    partAt(at) {
        return this.words(this.paragraphAt(at)).find((part) => part.start <= at && at < part.end);
    }

    trimmed(start, end) {
        [start, end] = this.trim(start, end);
        return start < end ? { start, end } : null;
    }

    trim(start, end) {
        while (start < end && isSpace(this.whole[start])) start += 1;
        while (end > start && isSpace(this.whole[end - 1])) end -= 1;
        return [start, end];
    }
}

const INDEX_EVERY = 256;
const PARAGRAPH_MOST = 4000;

/** Lines of `whole`; one too long to paint quickly is broken behind a space for the eye alone. */
function paragraphsOf(whole) {
    const paragraphs = [];
    const newline = /\r\n|\n|\r/g;
    let start = 0;
    for (let match = newline.exec(whole); match; match = newline.exec(whole)) {
        pushParagraph(paragraphs, whole, start, match.index, newline.lastIndex);
        start = newline.lastIndex;
    }
    pushParagraph(paragraphs, whole, start, whole.length, whole.length);
    return paragraphs;
}

function pushParagraph(paragraphs, whole, start, end, next) {
    while (end - start > PARAGRAPH_MOST) {
        const cut = breakBefore(whole, start, start + PARAGRAPH_MOST);
        paragraphs.push({ start, end: cut, next: cut });
        start = cut;
    }
    paragraphs.push({ start, end, next });
}

function breakBefore(whole, from, to) {
    const piece = whole.slice(from, to);
    const sentence = Math.max(piece.lastIndexOf(". "), piece.lastIndexOf("? "), piece.lastIndexOf("! "));
    if (sentence > PARAGRAPH_MOST / 2) return from + sentence + 2;
    const wide = piece.lastIndexOf("。");
    if (wide > PARAGRAPH_MOST / 2) return from + wide + 1;
    const space = piece.lastIndexOf(" ");
    if (space > PARAGRAPH_MOST / 2) return from + space + 1;
    const last = new Intl.Segmenter().segment(whole.slice(from, to + 64)).containing(to - from);
    return last && last.index > 0 ? from + last.index : to;
}

function locales(lang) {
    try {
        return lang && lang !== "und" ? Intl.getCanonicalLocales(lang) : undefined;
    } catch {
        return undefined;
    }
}

function isSecondHalf(text, unit) {
    const code = text.charCodeAt(unit);
    if (!(code >= 0xdc00 && code <= 0xdfff) || unit === 0) return false;
    const before = text.charCodeAt(unit - 1);
    return before >= 0xd800 && before <= 0xdbff;
}

function isSpace(character) {
    return /\s/.test(character);
}

/** Index of the last element that is at most `value` in a sorted list; -1 if there is none. */
function lastAtMost(list, value, of = (element) => element) {
    let low = 0;
    let high = list.length;
    while (low < high) {
        const middle = (low + high) >> 1;
        if (of(list[middle]) <= value) low = middle + 1;
        else high = middle;
    }
    return low - 1;
}
