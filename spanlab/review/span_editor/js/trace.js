/**
 * What a detector did on the way to its spans, beside the answer. Python sends a trace when it is
 * asked for one, and nothing is built before somebody looks: an item opens as fast with it as
 * without.
 */

import { h, pressable } from "./dom.js";
import { SECTIONS, otherSection } from "./trace_steps.js";
import { plural } from "./words.js";

/** A tab of the panel; it shows the trace of one annotator at a time. */
export class TracePanel {
    constructor(view) {
        this.view = view;
        this.annotator = null;
        this.choice = h("div", { class: "sl-trace-choice", role: "group", "aria-label": "Annotator" });
        this.body = h("div", { class: "sl-trace-body", tabindex: "0", role: "region", "aria-label": "Trace" });
        this.node = h("section", { class: "sl-trace" }, this.choice, this.body);
    }

    get editor() {
        return this.view.editor;
    }

    get isOpen() {
        return this.view.panel.shown === "trace";
    }

    /** Annotators of the open item that have something to tell. */
    tellers() {
        return this.editor.item?.payload.annotators.filter(tellsOfItself) ?? [];
    }

    /** The trace that the editor has to ask Python for, null if none. */
    wanted() {
        const { item, navigation } = this.editor;
        const annotator = this.isOpen ? this.annotator : this.view.claims.card.trail.wanted();
        if (!item || item.id !== navigation.open || annotator === null) return null;
        return item.traces?.has(annotator) ? null : { item: item.id, annotator };
    }

    /** Open or close it; opening begins with who suggested the chosen span. */
    toggle() {
        if (this.isOpen) return this.close();
        const name = this.first();
        return name === null ? this.view.say("This item has no traces.", true) : this.tell(name);
    }

    first() {
        const suggests = new Set(this.editor.focused?.members.map((member) => member.annotator));
        const tellers = this.tellers();
        const first = tellers.find(({ name }) => suggests.has(name)) ?? tellers.find(({ name }) => name === this.last) ?? tellers[0];
        return first?.name ?? null;
    }

    /** The trace of the next annotator; the first if none is shown. */
    next() {
        const names = this.tellers().map(({ name }) => name);
        if (!this.isOpen) return this.toggle();
        return this.tell(names[(names.indexOf(this.annotator) + 1) % Math.max(names.length, 1)] ?? null);
    }

    tell(annotator) {
        if (annotator === null) return this.view.say("This item has no traces.", true);
        this.annotator = this.last = annotator;
        this.view.panel.choose("trace");
        this.paint();
        this.body.scrollTop = 0;
        this.body.focus({ preventScroll: true });
        this.node.scrollIntoView({ block: "nearest" });
        return true;
    }

    close() {
        this.view.panel.back();
        this.view.focusAnswer();
        return true;
    }

    /** Its tab was chosen, by whatever way. */
    shown() {
        const there = this.tellers().some(({ name }) => name === this.annotator);
        if (!there) this.annotator = this.first();
        if (this.editor.item) this.paint();
    }

    /** Another item is shown: stay with the annotator if it has a trace here too. */
    follow() {
        const tellers = this.tellers();
        this.view.panel.count("trace", tellers.length);
        this.view.panel.tabs.get("trace").hidden = tellers.length === 0;
        if (!this.isOpen) return;
        const there = tellers.find(({ name }) => name === this.last) ?? tellers[0];
        this.annotator = there?.name ?? null;
        this.paint();
    }

    /**
     * Take in what Python sent; `about` is null where the annotation is gone. A slow line answers
     * twice: what somebody has opened in a trace meanwhile stays open.
     */
    receive({ item, annotator, about }) {
        const there = this.editor.cache.items.get(item);
        if (!there || there.traces?.has(annotator)) return;
        (there.traces ??= new Map()).set(annotator, about);
        if (this.isOpen && this.editor.item === there) this.paint();
        if (this.editor.item === there) this.view.claims.paint();
    }

    paint() {
        const { item } = this.editor;
        this.choice.replaceChildren(...this.tellers().map((teller) => this.chooser(teller)));
        this.body.setAttribute("aria-label", this.annotator === null ? "Trace" : `Trace of ${this.editor.names.of(this.annotator)}`);
        if (this.annotator === null) return this.show(item, h("p", { class: "sl-quiet" }, "No detector left a trace on this item."));
        const about = item.traces?.get(this.annotator);
        if (about === undefined) {
            this.show(item, h("p", { class: "sl-quiet" }, "Fetching the trace …"));
            return this.editor.outbox.send();
        }
        if (about === null) return this.show(item, h("p", { class: "sl-quiet" }, "This annotation is gone."));
        if (this.built === about) return undefined;
        this.show(item, ...this.sections(about, item));
        this.built = about;
        return this.view.say(`Trace of ${this.editor.names.of(this.annotator)}. ${summaryOf(about)}`);
    }

    show(item, ...nodes) {
        this.built = null;
        this.body.lang = item.payload.lang;
        this.body.replaceChildren(...nodes);
    }

    chooser({ name, status }) {
        const chosen = name === this.annotator;
        const node = h("button", { class: "sl-chip", type: "button", "aria-pressed": String(chosen), "data-status": status },
            h("b", {}, this.editor.names.of(name)), status === "failed" ? " failed" : "");
        node.addEventListener("click", () => this.tell(name));
        return node;
    }

    sections(about, item) {
        const nodes = [];
        if (about.status === "failed") {
            nodes.push(h("p", { class: "sl-trace-failed", dir: "auto" }, h("b", {}, "✕ Failed: "), about.note ?? "no reason was kept"));
        } else if (about.note) {
            nodes.push(h("p", { class: "sl-note", dir: "auto" }, about.note));
        }
        for (const steps of runsOfAKind(about.steps)) {
            const { kind } = steps[0];
            const build = Object.hasOwn(SECTIONS, kind) ? SECTIONS[kind] : () => otherSection(kind, steps);
            nodes.push(build(this, steps, { about, item }));
        }
        if (about.steps.length === 0) nodes.push(h("p", { class: "sl-quiet" }, "It kept nothing of what it asked, read and decided."));
        return nodes;
    }

    /** A button that leads somewhere; a mouse goes on in the answer, a key stays in the trace. */
    leading(className, title, act, ...children) {
        const node = h("button", { class: `sl-lead ${className}`, type: "button", title }, ...children);
        return pressable(node, (event) => {
            act();
            if (event.detail > 0) this.view.focusAnswer();
        });
    }

    /** Text of a model that was found in the answer, or is marked as not found. */
    placed(step) {
        const places = step.places ?? [];
        if (places.length === 0) {
            return h("span", { class: "sl-lost" }, step.text);
        }
        let turn = 0;
        const title = places.length === 1 ? "Show it in the answer" : `Show its ${places.length} places in the answer, one by one`;
        return this.leading("sl-found", title, () => {
            this.focusPlace(places[turn % places.length]);
            turn += 1;
        }, step.text);
    }

    /** Choose the span that lies exactly there, else select the characters. */
    focusPlace(place) {
        const { editor } = this;
        const { text } = editor.item;
        const [start, end] = [text.unit(place.start), text.unit(place.end)];
        const mark = editor.markAt(start, end);
        this.view.pointer.used = false;
        if (mark) return editor.focusOn(mark.id);
        editor.focusOn(null, { scroll: false });
        editor.selection.caret = start;
        return editor.selection.move(end, true);
    }
}

/** Say whether an annotation has a trace, or failed and can say why. */
export function tellsOfItself({ steps, status }) {
    return steps > 0 || status === "failed";
}

function runsOfAKind(steps) {
    const runs = [];
    for (const step of steps) {
        const last = runs.at(-1);
        if (last && last[0].kind === step.kind) last.push(step);
        else runs.push([step]);
    }
    return runs;
}

function summaryOf({ status, note, steps }) {
    return status === "failed" ? `Failed: ${note}` : `${plural(steps.length, "step")}.`;
}
