/** What a person can do to an item. */

import { ItemCache } from "./cache.js";
import { Clock } from "./clock.js";
import { COMMANDS } from "./commands.js";
import { Conflict } from "./conflict.js";
import { Conversation } from "./conversation.js";
import { Finishing } from "./finishing.js";
import { newId } from "./ids.js";
import { byLikelihood, memberKey } from "./joining.js";
import { FIELDS, bindings } from "./keys.js";
import { Labels } from "./labels.js";
import { marksOf } from "./marks.js";
import { Names } from "./names.js";
import { Navigation } from "./navigation.js";
import { Outbox } from "./outbox.js";
import { Selection } from "./selection.js";
import { View } from "./view.js";
import { Visibility } from "./visibility.js";
import { STATUS_WORDS, describe, plural } from "./words.js";

const ALWAYS = new Set(["help", "guidelines", "escape"]);
const RETRY_EVERY = 500;

/** The open item, the mark in focus, and the operations on them. */
export class Editor {
    constructor(parent, data, wire) {
        this.labels = new Labels(this);
        this.labels.take(data);
        this.keys = data.keys;
        this.asked = data.asked;
        this.adjudicating = data.adjudicating;
        this.bindings = bindings(data.keys.filter((key) => key.where === "answer"));
        this.claimBindings = bindings(data.keys.filter((key) => key.where === "claims"));
        this.questionBindings = bindings(data.keys.filter((key) => key.where === "questions"));
        this.item = null;
        this.cache = new ItemCache();
        this.navigation = new Navigation(this);
        this.selection = new Selection(this);
        this.visibility = new Visibility();
        this.names = new Names(this);
        this.conflict = new Conflict(this);
        this.finishing = new Finishing(this);
        this.conversation = new Conversation(this, wire);
        this.clock = wire.clock ??= new Clock();
        this.outbox = wire.outbox ??= new Outbox();
        this.outbox.onChange = () => this.view.head.saved(this.outbox);
        this.outbox.exchange = () => this.conversation.exchange();
        this.view = new View(parent, this);
        this.timer = setInterval(() => this.outbox.retry(), RETRY_EVERY);
    }

    unmount() {
        clearInterval(this.timer);
        this.clock.turnTo(null);
        this.view.unmount();
        this.conversation.end();
    }

    show(item) {
        const again = this.item?.id === item.id;
        this.item = item;
        this.clock.turnTo(this.log);
        this.selection.anchor = null;
        this.selection.caret = again ? Math.min(this.selection.caret, item.text.length) : 0;
        this.refresh();
        this.focus = again && this.marks.has(this.focus) ? this.focus : this.firstMark();
        this.view.open(item);
        this.view.focusChanged({ scroll: true });
        if (!again) this.view.say(`Item ${item.id}. ${this.summary()}`);
        if (!again) this.view.notice.shown(item.id);
        this.conversation.sayTaken();
        this.conflict.layOnTop();
        this.finishing.shown();
        this.view.guidelines.atFirstItem();
        this.view.typing.release();
    }

    /** Run a command by name; false means "not for me, try the next binding". */
    run(command, event, key) {
        if (this.navigation.opening !== null && !ALWAYS.has(command)) {
            if (FIELDS.has(command)) return this.view.typing.hold(command, event, key);
            return this.view.say("Still opening the item.");
        }
        if (command !== "help" && command !== "escape" && !this.item) return this.view.say("No item is open.");
        const isRun = COMMANDS[command](this, event, key) !== false;
        if (isRun) this.view.hints.used(command);
        return isRun;
    }

    // -- marks

    refresh() {
        const chosen = this.marks?.get(this.focus);
        const { threshold } = this.view;
        Object.assign(this, marksOf(this.item, { hidden: this.hidden(), isShown: threshold.filter() }));
        if (!chosen || this.marks.has(this.focus)) return;
        this.focus = this.markAt(chosen.start, chosen.end)?.id ?? null;
    }

    /** Names of annotators whose suggestions on the open item are not shown. */
    hidden() {
        return this.visibility.hidden(this.item);
    }

    toggle(annotator) {
        this.visibility.toggle(annotator);
        this.refresh();
        this.view.open(this.item);
        this.view.focusChanged({ scroll: false });
    }

    /** Show the parts of the chosen suggestion by themselves, or as one again. */
    toggleParts() {
        const mark = this.focused;
        const { opened } = this.item;
        const whole = mark?.members.filter((member) => member.parts) ?? [];
        const runs = mark?.members.map((member) => opened.get(memberKey(member))).filter(Boolean) ?? [];
        if (whole.length === 0 && runs.length === 0) return this.view.say("This suggestion has only one part.", true);
        for (const { parts } of whole) {
            const run = parts.map(memberKey);
            for (const key of run) opened.set(key, run);
        }
        for (const key of runs.flat()) opened.delete(key);
        this.refresh();
        const now = [...this.marks.values()].find(({ kind, start, end }) => kind === "open" && start <= mark.start && mark.start < end);
        this.focusOn(now?.id ?? null);
        const parts = Math.max(...whole.map((member) => member.parts.length));
        return this.view.say(whole.length > 0 ? `Opened into ${plural(parts, "part")}.` : "Joined again.");
    }

    get focused() {
        return this.focus ? this.marks.get(this.focus) : undefined;
    }

    /** The first mark of exactly these characters. */
    markAt(start, end) {
        return [...this.marks.values()].find((mark) => mark.start === start && mark.end === end);
    }

    /** The first mark that covers some of what another one covered, null for none. */
    markOver(other) {
        return [...this.marks.values()].find((mark) => other && mark.start < other.end && other.start < mark.end) ?? null;
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
        this.view.claims.dim();
        const mark = this.focused;
        if (mark) this.selection.caret = mark.start;
        this.selection.drop();
        this.view.focusChanged(options);
        if (mark) this.view.say(describe(mark, this.names));
    }

    toNextOpen(from) {
        const open = this.open();
        const next = open.find((mark) => mark.start >= from) ?? open[0];
        if (next) this.focusOn(next.id);
        return next;
    }

    /** Suggestions that are not decided. */
    open() {
        return [...this.marks.values()].filter((mark) => mark.kind === "open");
    }

    /** What of those is likely: all of them, where only likely ones are shown. */
    likely() {
        return this.open().flatMap((mark) => byLikelihood(mark).likely);
    }

    count(kind) {
        let count = 0;
        for (const mark of this.marks.values()) if (mark.kind === kind) count += 1;
        return count;
    }

    summary() {
        return `${STATUS_WORDS[this.item.history.state.status]}. ${plural(this.count("own"), "own span")}, `
            + `${plural(this.count("open"), "undecided suggestion")}.`;
    }

    // -- operations

    /** What names the log that operations on the open item go into. */
    get log() {
        const { dataset, reviewer } = this.navigation.place;
        return JSON.stringify([dataset, reviewer, this.item.id]);
    }

    /** Apply one operation here and now, and put it into the outbox. */
    apply(op) {
        const { history } = this.item;
        const { dataset, reviewer, author } = this.navigation.place;
        const base = history.version;
        try {
            history.push(op);
        } catch (error) {
            this.view.say(error.message, true);
            return false;
        }
        const seconds = ends(op) ? { seconds: this.clock.lap(this.log) } : {};
        const { version } = this.view.guidelines;
        this.outbox.add({ base, op, dataset, reviewer, author, item: this.item.id, guidelines: version, ...seconds });
        this.refresh();
        this.view.marksChanged();
        return true;
    }

    /** Take the focused mark over as one's own span; returns the id of the own span. */
    own() {
        const mark = this.focused;
        if (!mark) return null;
        if (mark.kind === "own") return mark.span;
        const span = newId();
        if (!this.apply({ kind: "accept", span, mark: mark.best })) return null;
        this.focus = `own:${span}`;
        this.view.focusChanged({ scroll: false });
        return span;
    }

    draw(start, end) {
        const [from, to] = [this.item.text.point(start), this.item.text.point(end)];
        const same = this.markAt(start, end);
        this.selection.drop();
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

    /** Ask for a comment on the chosen span; on a suggestion it decides nothing. */
    comment() {
        if (!this.focused) return this.view.say("Choose a span first.", true);
        return this.ask("Comment on this span", this.focused.comment, (text) => {
            const mark = this.focused;
            if (mark?.kind === "own") this.apply({ kind: "note", span: mark.span, text });
            else if (mark) this.apply({ kind: "note-suggestion", mark: mark.best, text });
        });
    }

    commentItem() {
        return this.ask("Comment on the whole answer", this.item.history.state.note, (text) => {
            this.apply({ kind: "note", span: null, text });
        });
    }

    ask(title, before, keep) {
        return this.view.prompt.ask(title, before ?? "", (typed) => {
            keep(typed);
            this.view.focusChanged({ scroll: false });
            this.view.say(typed ? "Comment saved." : "Comment removed.");
        });
    }
}

function ends({ kind, status }) {
    return kind === "finish" || (kind === "status" && status !== "not-annotated");
}
