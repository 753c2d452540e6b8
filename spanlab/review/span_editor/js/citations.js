/** From a marker in the answer to the passage that it cites, and from a passage to where it is cited. */

import { h, pressable } from "./dom.js";
import { plural } from "./words.js";

const MARKED = "sl-citation";

/** The citations of the open item, one step for each passage that one names. */
export class Citations {
    constructor(view) {
        this.view = view;
        this.steps = [];
        this.only = pressable(h("button", { class: "sl-button", type: "button", "aria-pressed": "false", hidden: "",
            title: "Hide passages that the answer does not cite" }, "Cited only"), () => this.narrow(!this.isNarrow));
    }

    build(item) {
        const { text, payload: { citations, passages } } = item;
        this.steps = citations.flatMap(({ start, end, passages: cited }) => (cited.length > 0 ? cited : [null])
            .map((passage) => ({ start: text.unit(start), end: text.unit(end), passage })));
        this.last = null;
        const cited = new Set(this.steps.map(({ passage }) => passage));
        this.only.hidden = passages.every((passage, index) => cited.has(index)) || this.steps.length === 0;
        if (this.only.hidden) this.narrow(false);
    }

    /** Say on each passage how often it is cited: a press leads there. */
    addTo(passages) {
        passages.forEach(({ node }, index) => {
            const times = this.steps.filter(({ passage }) => passage === index).length;
            node.classList.toggle("sl-uncited", times === 0);
            if (times === 0) return;
            const does = `Go to where the answer cites it (${plural(times, "place")})`;
            node.firstChild.append(" ", pressable(h("button", { class: "sl-button sl-cited-by", type: "button", title: does, "aria-label": does },
                `cited ${times}×`), () => this.back(index)));
        });
    }

    get isNarrow() {
        return this.only.getAttribute("aria-pressed") === "true";
    }

    narrow(on) {
        this.only.setAttribute("aria-pressed", String(on));
        this.view.evidence.passages.classList.toggle("sl-narrow", on);
    }

    /** Show in the answer what can be pressed. */
    paint() {
        if (!globalThis.Highlight) return;
        CSS.highlights.delete(MARKED);
        if (this.steps.length > 0) CSS.highlights.set(MARKED, new Highlight(...this.steps.map((step) => this.view.geometry.range(step))));
    }

    /** Open what is cited at the chosen span or the caret, or next behind it; again, the next one. */
    next() {
        if (this.steps.length === 0) return this.view.say("This answer cites nothing.", true);
        const from = this.from();
        const again = this.last !== null && this.at === from;
        const first = this.steps.findIndex(({ end }) => end > from);
        return this.go(again ? (this.last + 1) % this.steps.length : Math.max(first, 0));
    }

    from() {
        const { focused, selection } = this.view.editor;
        return focused?.start ?? selection.caret;
    }

    go(number) {
        const { editor, geometry } = this.view;
        const step = this.steps[number];
        if (editor.focused) geometry.scrollTo(step.start);
        else editor.selection.move(step.start, false);
        this.open(step);
        this.last = number;
        this.at = this.from();
        return true;
    }

    open({ passage }) {
        this.shown = passage;
        if (passage === null) return this.view.say("No passage has this number.", true);
        return this.view.evidence.showPassage(passage, []);
    }

    /** A press on a marker opens its passage; again, its next one. */
    click(at) {
        const here = this.steps.flatMap((step, number) => (step.start <= at && at < step.end ? [number] : []));
        if (here.length === 0) return;
        const turn = this.pressed === here[0] ? (here.indexOf(this.last) + 1) % here.length : 0;
        this.pressed = here[0];
        this.last = here[turn];
        this.open(this.steps[this.last]);
    }

    /** Go to the next place that cites a passage; without one, the passage that was opened last. */
    back(passage = this.shown) {
        const { editor } = this.view;
        const places = this.steps.filter((step) => step.passage === passage && passage !== null);
        if (places.length === 0) return this.view.say("Open a passage that is cited first.", true);
        const next = places.find(({ start }) => start > editor.selection.caret) ?? places[0];
        this.shown = passage;
        editor.focusOn(null, { scroll: false });
        editor.selection.move(next.start, false);
        this.view.focusAnswer();
        return this.view.say(`Cited here, ${places.indexOf(next) + 1} of ${places.length}.`);
    }
}
