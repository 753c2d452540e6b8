/** The card of the chosen span. */

import { h, meter } from "./dom.js";
import { voteWords, votesOn } from "./votes.js";
import { percent, shorten } from "./words.js";

/** What is known of the chosen span, what can be done to it, and who marks it. */
export class SpanCard {
    constructor(view) {
        this.view = view;
        this.node = h("section", { class: "sl-card", "aria-label": "Span" });
    }

    paint() {
        const { editor, tools, attributes } = this.view;
        const isAnswering = attributes.hasFocus;
        const mark = editor.focused;
        this.node.hidden = !mark; // others get its room
        if (!mark) {
            if (isAnswering) this.view.focusAnswer();
            return;
        }
        const kind = { own: "Your span", open: "Suggestion", rejected: "Rejected" }[mark.kind];
        const votes = votesOn(editor.item, mark, editor.hidden());
        const quoted = votes.some((vote) => vote.note === mark.note); // stands beside whose it is
        // Buttons come before what differs from span to span: the next click meets the same one.
        this.node.replaceChildren(
            h("div", { class: "sl-card-head" },
                h("span", { class: `sl-kind sl-kind-${mark.kind}` }, kind),
                mark.kind === "own" ? "" : h("span", { class: "sl-prob" }, meter(mark.prob), percent(mark.prob)),
                mark.label ? editor.labels.tag(mark.label) : ""),
            h("div", { class: "sl-card-tools" }, ...tools.buttons(mark)),
            this.labelRow(mark),
            attributes.node,
            h("div", { class: "sl-card-text", tabindex: "0", role: "region", "aria-label": "What is said of it" },
                h("blockquote", { dir: "auto", lang: editor.item.payload.lang }, shorten(mark.text, 220)),
                mark.note && !quoted ? h("p", { class: "sl-note", dir: "auto" }, mark.note) : "",
                votes.length ? h("ul", { class: "sl-votes", "aria-label": "Who marks it" }, ...editor.names.orderedMembers(votes).map((vote) => voteLine(vote, mark, editor))) : ""));
        attributes.paint(isAnswering);
    }

    labelRow(mark) {
        const { labels } = this.view.editor;
        const row = h("div", { class: "sl-labels", role: "group", "aria-label": "Label" });
        const all = labels.all();
        for (const { name, key, description } of all.filter((label) => label.key)) {
            const node = this.view.button(name, "label", mark.label === name ? "sl-chosen" : "", key);
            node.setAttribute("aria-pressed", String(mark.label === name));
            if (description) node.title = `${description} (${key})`;
            node.style.setProperty("--sl-tag", labels.colour(name));
            row.append(node);
        }
        const others = all.filter((label) => !label.key).length;
        if (others > 0) row.append(this.view.button(`${others} more…`, "findLabel"));
        return row;
    }
}

function voteLine(vote, mark, { names, item }) {
    return h("li", {}, h("b", {}, names.of(vote.annotator)), ` ${voteWords(vote, mark, item.text)}`,
        vote.label ? `, ${vote.label}` : "", ...Object.entries(vote.attributes).map(([name, given]) => `, ${name}: ${given}`),
        vote.note ? h("i", { dir: "auto" }, ` — ${vote.note}`) : "");
}
