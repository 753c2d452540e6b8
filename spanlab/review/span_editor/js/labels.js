/** The labels that a span can have. */

import { h } from "./dom.js";
import { keyName } from "./keys.js";
import { plural } from "./words.js";

/** The labels to choose from: those of the dataset, then others that the open item's suggestions have. */
export class Labels {
    constructor(editor) {
        this.editor = editor;
        this.given = [];
        this.required = false;
    }

    take({ labels, palette, label_required: required }) {
        this.given = labels;
        this.palette = palette;
        this.required = required;
    }

    all() {
        const { item } = this.editor;
        if (this.kept?.item !== item || this.kept.given !== this.given) this.kept = { item, given: this.given, all: this.gathered() };
        return this.kept.all;
    }

    gathered() {
        const names = new Set(this.given.map((label) => label.name));
        const spans = this.editor.item?.payload.annotators.flatMap((annotator) => annotator.spans) ?? [];
        const found = new Set(spans.map((span) => span.label).filter((name) => name && !names.has(name)));
        return [...this.given, ...[...found].map((name) => ({ name, key: null, colour: null, description: "" }))];
    }

    colour(name) {
        const labels = this.all();
        const index = labels.findIndex((label) => label.name === name);
        return labels[index]?.colour ?? this.palette[Math.max(0, index) % this.palette.length];
    }

    /** A label's name with its colour beside it. */
    tag(name) {
        const node = h("span", { class: "sl-label" }, name);
        node.style.setProperty("--sl-tag", this.colour(name));
        return node;
    }

    /** Ask for the label of the span in focus by a part of its name or description. */
    search() {
        const { editor } = this;
        const draw = (label) => [this.tag(label.name), label.key ? h("kbd", {}, keyName(label.key)) : "", h("span", { class: "sl-quiet" }, label.description)];
        return editor.view.chooser.open({ noun: "label", all: this.all(), draw, choose: (name) => editor.label(name) });
    }

    byKey(key) {
        return this.given.find((label) => label.key === key)?.name;
    }

    /** Say whether Done may be; the first span that lacks a label is chosen if not. */
    areGiven(accepted) {
        if (!this.required) return true;
        const { editor } = this;
        const missing = [...editor.marks.values()].filter((mark) => mark.kind === "own" && !mark.label);
        const more = accepted.filter((piece) => !(piece.best.label ?? null)).length;
        if (missing.length + more === 0) return true;
        if (missing.length > 0) editor.focusOn(missing[0].id);
        editor.view.say(`Not done: ${plural(missing.length + more, "span")} without a label, which this dataset requires.`, true);
        return false;
    }
}
