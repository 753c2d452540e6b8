/** The labels that a span can have, and the line in which one is searched. */

import { h } from "./dom.js";
import { keyName } from "./keys.js";
import { plural } from "./words.js";

const COLOURS = ["#aa3377", "#228833", "#3399cc", "#bb9900", "#ee6677", "#4477aa", "#888888"];

/** The labels to choose from: those of the dataset, then others that the open item's suggestions have. */
export class Labels {
    constructor(editor) {
        this.editor = editor;
        this.given = [];
        this.required = false;
    }

    take({ labels, label_required: required }) {
        this.given = labels;
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
        return labels[index]?.colour ?? COLOURS[Math.max(0, index) % COLOURS.length];
    }

    /** A label's name with its colour beside it. */
    tag(name) {
        const node = h("span", { class: "sl-label" }, name);
        node.style.setProperty("--sl-tag", this.colour(name));
        return node;
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

/** Asks for a label by a part of its name or description. */
export class LabelSearch {
    constructor(view) {
        this.view = view;
        this.input = h("input", {
            type: "text", role: "combobox", "aria-label": "Label", "aria-expanded": "true", "aria-controls": "sl-found-labels",
            placeholder: "Part of a label", autocomplete: "off", dir: "auto",
        });
        this.list = h("ul", { class: "sl-found", id: "sl-found-labels", role: "listbox", "aria-label": "Labels" });
        this.node = h("div", { class: "sl-find-label", hidden: "" }, this.input, this.list);
    }

    get isOpen() {
        return !this.node.hidden;
    }

    listen(on) {
        on(this.input, "input", () => this.find());
        on(this.list, "mousedown", (event) => event.preventDefault());
        on(this.list, "click", (event) => this.choose(event.target.closest("li")?.slLabel));
    }

    open() {
        this.input.value = "";
        this.node.hidden = false;
        this.find();
        this.input.focus();
        return true;
    }

    find() {
        const wanted = this.input.value.toLowerCase().trim();
        this.found = this.view.editor.labels.all().filter(({ name, description }) => `${name}\n${description}`.toLowerCase().includes(wanted));
        this.at = 0;
        this.paint();
    }

    paint() {
        this.list.replaceChildren(...this.found.map((label, index) => {
            const node = h("li", { role: "option", id: `sl-found-${index}`, "aria-selected": String(index === this.at) },
                this.view.editor.labels.tag(label.name), label.key ? h("kbd", {}, keyName(label.key)) : "",
                h("span", { class: "sl-quiet" }, label.description));
            node.slLabel = label.name;
            return node;
        }));
        if (this.found.length === 0) this.list.append(h("li", { class: "sl-quiet" }, "No such label."));
        this.input.setAttribute("aria-activedescendant", `sl-found-${this.at}`);
        this.list.children[this.at]?.scrollIntoView({ block: "nearest" });
    }

    key(event) {
        const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
        if (step && this.found.length > 0) {
            this.at = (this.at + step + this.found.length) % this.found.length;
            this.paint();
        } else if (event.key === "Enter") this.choose(this.found[this.at]?.name);
        else if (["Escape", "Tab"].includes(event.key)) this.close();
        else return;
        event.preventDefault();
    }

    choose(name) {
        if (!name) return;
        this.close();
        this.view.editor.label(name);
    }

    close() {
        this.node.hidden = true;
        this.view.focusAnswer();
    }
}
