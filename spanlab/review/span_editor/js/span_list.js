/** The list of all spans. */

import { h } from "./dom.js";
import { describe, shorten } from "./words.js";

const ROW = 30;

/** Rows that can be seen; the others exist only as height. */
export class SpanList {
    constructor(view) {
        this.view = view;
        this.rows = [];
        this.title = h("h2", { class: "sl-title" });
        this.space = h("div", { class: "sl-list-space" });
        this.node = h("div", { class: "sl-list", role: "listbox", "aria-label": "Spans" }, this.space);
    }

    listen(on) {
        on(this.node, "scroll", () => this.paint(), { passive: true });
        on(this.node, "click", (event) => {
            const row = event.target.closest("[data-mark]");
            if (!row) return;
            this.view.editor.focusOn(row.dataset.mark);
            this.view.focusAnswer();
        });
    }

    /** Show these marks, with the one in focus in sight. */
    show(marks, focus) {
        this.rows = marks;
        const index = marks.findIndex((mark) => mark.id === focus);
        if (index >= 0) this.scroll(index);
        this.paint();
    }

    paint() {
        const { rows } = this;
        const { editor } = this.view;
        this.view.panel.count("spans", rows.length);
        this.view.panel.fill("spans", rows.length > 0 || this.view.annotators.isFilled);
        this.title.textContent = `Spans: ${editor.count("own")} own, ${editor.count("open")} undecided`;
        this.space.style.height = `${rows.length * ROW}px`;
        const first = Math.max(0, Math.floor(this.node.scrollTop / ROW) - 3);
        const last = Math.min(rows.length, first + Math.ceil((this.node.clientHeight || 300) / ROW) + 6);
        const nodes = [];
        for (let index = first; index < last; index += 1) nodes.push(this.row(rows[index], index));
        if (rows.length === 0) nodes.push(h("p", { class: "sl-quiet", role: "option", "aria-disabled": "true" },
            "No spans. Drag over the text, or select with Shift and arrows and press d."));
        this.space.replaceChildren(...nodes);
    }

    row(mark, index) {
        const chosen = mark.id === this.view.editor.focus;
        const sign = { own: "■", open: "◌", rejected: "✕" }[mark.kind];
        const node = h("div", {
            class: `sl-row sl-row-${mark.kind}`, role: "option", "aria-selected": String(chosen),
            "aria-setsize": String(this.rows.length), "aria-posinset": String(index + 1),
            "data-mark": mark.id,
        },
        h("span", { class: "sl-unseen" }, describe(mark, this.view.editor.names)),
        h("span", { class: "sl-sign", "aria-hidden": "true" }, sign),
        h("span", { class: "sl-row-prob", "aria-hidden": "true" }, mark.kind === "own" ? "" : String(Math.round(mark.prob * 100))),
        h("span", { class: "sl-row-text", dir: "auto", "aria-hidden": "true" }, shorten(mark.text, 80)),
        mark.note ? h("span", { title: mark.note, "aria-hidden": "true" }, "✎") : "",
        mark.label ? h("span", { "aria-hidden": "true" }, this.view.editor.labels.tag(mark.label)) : "",
        h("span", { class: "sl-row-by", "aria-hidden": "true" }, mark.members.length > 1 ? `×${mark.members.length}` : ""));
        node.style.top = `${index * ROW}px`;
        return node;
    }

    scroll(index) {
        const top = index * ROW;
        const { scrollTop, clientHeight } = this.node;
        if (top < scrollTop || top + ROW > scrollTop + clientHeight) {
            this.space.style.height = `${this.rows.length * ROW}px`;
            this.node.scrollTop = top - clientHeight / 2 + ROW / 2;
        }
    }
}
