/** The passages that came with the answer, with the quotes of the chosen span marked. */

import { centre, h, pressable } from "./dom.js";
import { EvidenceForm } from "./evidence_form.js";
import { EvidenceSearch } from "./evidence_search.js";
import { distinct } from "./joining.js";
import { PassageView } from "./passage.js";

/** Passages of the open item. */
export class Evidence {
    constructor(view) {
        this.view = view;
        this.views = [];
        this.search = new EvidenceSearch(this);
        this.form = new EvidenceForm(this);
        this.passages = h("div", { class: "sl-passages", tabindex: "0", role: "region", "aria-label": "Evidence" });
        this.node = h("section", { class: "sl-evidence" }, this.search.node, this.passages, this.form.node);
        this.count = h("span", {});
        this.steps = h("span", { class: "sl-steps-of", role: "group", "aria-label": "Pieces of evidence", hidden: "" },
            this.stepper("‹", "Previous piece of evidence", -1), this.count, this.stepper("›", "Next piece of evidence", 1));
        this.controls = h("div", { class: "sl-layout" }, this.steps, view.citations.only, this.form.opener, view.button("Find", "findEvidence"));
    }

    stepper(sign, does, step) {
        return pressable(h("button", { class: "sl-button", type: "button", title: does, "aria-label": does }, sign), () => this.next(step));
    }

    build({ id, passages, lang }) {
        this.form.follow(id, this.view.editor.navigation.place.dataset);
        if (this.builtFor === passages) return;
        this.builtFor = passages;
        this.view.panel.count("evidence", passages.length);
        this.views = passages.map((passage, index) => new PassageView(passage, index, lang));
        this.texts = this.views.map(({ text }) => text);
        this.marked = new Set();
        this.shown = "";
        const nodes = this.views.map(({ node }) => node);
        this.view.citations.addTo(this.views);
        if (nodes.length === 0) nodes.push(h("p", { class: "sl-quiet" }, "This item has no passages."));
        this.passages.replaceChildren(...nodes);
        this.passages.scrollTop = 0;
        this.search.again();
    }

    /** Quotes of the chosen claim, or that belong to the chosen span: its own, else those of suggestions over it. */
    quotes() {
        const { editor, claims } = this.view;
        const spoken = claims.evidence();
        if (spoken) return distinct(spoken);
        const mark = editor.focused;
        if (!mark) return [];
        if (mark.evidence.length > 0) return distinct(mark.evidence);
        const hidden = editor.hidden();
        return distinct(editor.item.groups
            .filter((group) => group.start < mark.end && group.end > mark.start)
            .flatMap((group) => group.members)
            .filter((member) => !hidden.has(member.annotator))
            .flatMap((member) => member.evidence ?? []));
    }

    paint() {
        const quotes = this.quotes();
        const signature = JSON.stringify(quotes);
        if (signature === this.shown) return;
        this.mark(quotes);
        this.shown = signature;
        this.show();
    }

    /** Mark these quotes and no others. */
    mark(quotes) {
        const named = new Set(quotes.map((quote) => quote.passage));
        for (const index of new Set([...this.marked, ...named])) {
            this.views[index]?.paint(quotes.filter((quote) => quote.passage === index));
        }
        this.marked = named;
        this.shown = null;
        this.at = 0;
        this.search.paint();
    }

    /** Bring the quote whose turn it is into sight; false if there is none. */
    show() {
        const marks = this.passages.querySelectorAll("mark");
        this.steps.hidden = marks.length < 2;
        if (marks.length === 0) return false;
        const turn = ((this.at % marks.length) + marks.length) % marks.length;
        this.count.textContent = `${turn + 1} of ${marks.length}`;
        marks.forEach((mark, index) => mark.classList.toggle("sl-chosen", index === turn));
        centre(this.passages, marks[turn]);
        return marks[turn];
    }

    next(step = 1) {
        this.view.panel.reveal("evidence");
        this.at = (this.at ?? -1) + step;
        const shown = this.show();
        const which = this.steps.hidden ? "" : ` ${this.count.textContent}`;
        return this.view.say(shown ? `Evidence${which}: ${shown.textContent}` : "No evidence for this span.", !shown);
    }

    /** Bring a passage into sight with these quotes marked, until another span is chosen. */
    showPassage(index, quotes) {
        this.mark(quotes.map((quote) => ({ ...quote, passage: index })));
        this.view.panel.reveal("evidence");
        const passage = this.views[index];
        if (!this.show()) centre(this.passages, passage.node);
        this.view.say(`${passage.title}. ${quotes.map((quote) => quote.note ?? "").join(" ")}`.trim());
    }
}
