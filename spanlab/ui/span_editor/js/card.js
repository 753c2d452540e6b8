/** The card of the chosen span. */

import { h, meter } from "./dom.js";
import { percent, shorten } from "./words.js";

/** What is known of the chosen span, what can be done to it, and who marks it. */
export class SpanCard {
    constructor(view) {
        this.view = view;
        this.node = h("section", { class: "sl-card", "aria-label": "Span" });
    }

    paint() {
        const { editor, tools } = this.view;
        const mark = editor.focused;
        this.node.hidden = !mark; // others get its room
        if (!mark) return;
        const kind = { own: "Your span", open: "Suggestion", rejected: "Rejected" }[mark.kind];
        const votes = editor.item.votes(mark.start, mark.end, editor.hidden());
        this.node.replaceChildren(
            h("div", { class: "sl-card-head" },
                h("span", { class: `sl-kind sl-kind-${mark.kind}` }, kind),
                mark.kind === "own" ? "" : h("span", { class: "sl-prob" }, meter(mark.prob), percent(mark.prob)),
                mark.label ? h("span", { class: "sl-label" }, mark.label) : "",
                h("span", { class: "sl-card-tools" }, ...tools.buttons(mark))),
            h("blockquote", { dir: "auto", lang: editor.item.payload.lang }, shorten(mark.text, 220)),
            mark.note ? h("p", { class: "sl-note", dir: "auto" }, mark.note) : "",
            votes.length ? h("ul", { class: "sl-votes", "aria-label": "Who marks it" }, ...votes.map((vote) => voteLine(vote, mark))) : "",
            this.labelRow(mark));
    }

    labelRow(mark) {
        const row = h("div", { class: "sl-labels", role: "group", "aria-label": "Label" });
        this.view.editor.labels.forEach((label, index) => {
            const node = this.view.button(label, "label", mark.label === label ? "sl-chosen" : "", String(index + 1));
            node.setAttribute("aria-pressed", String(mark.label === label));
            row.append(node);
        });
        return row;
    }
}

function voteLine(vote, mark) {
    const exact = vote.exact || mark.members.some((member) => member.annotator === vote.annotator);
    const share = exact ? "exactly this" : `${percent(vote.covered)} of it`;
    return h("li", {}, h("b", {}, vote.annotator), ` ${percent(vote.prob)}, ${share}`,
        vote.label ? `, ${vote.label}` : "", vote.note ? h("i", { dir: "auto" }, ` — ${vote.note}`) : "");
}
