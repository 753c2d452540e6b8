/** Who annotated the open item: a chip each, to show or hide what they suggest. */

import { h, pressable } from "./dom.js";
import { keyName } from "./keys.js";
import { tellsOfItself } from "./trace.js";
import { KIND_WORDS, STATUS_WORDS, kindOf, plural, verdictWords } from "./words.js";

const FEW = 3; // of a kind that are shown before somebody asks for the others

/** The chips above the list of spans. */
export class Annotators {
    constructor(view) {
        this.view = view;
        this.unfolded = new Set(); // kinds that are shown whole
        this.node = h("div", { class: "sl-annotators", role: "group", "aria-label": "Suggestions shown" });
    }

    build({ annotators, hidden }) {
        const ordered = this.view.editor.names.ordered(annotators);
        const kinds = Object.keys(KIND_WORDS).map((kind) => ordered.filter((one) => one.kind === kind));
        const nodes = kinds.flatMap((group) => this.group(group));
        const hiddenOnes = hiddenWords(hidden);
        this.isFilled = nodes.length > 0 || hiddenOnes !== "";
        const others = hiddenOnes || (nodes.length === 0 ? "Nobody has annotated this item yet." : "");
        if (others) nodes.push(h("span", { class: "sl-quiet" }, others));
        this.node.replaceChildren(...nodes);
    }

    /** The first few of one kind, and the way to the others. */
    group(group) {
        const [first] = group;
        const isOpen = group.length <= FEW + 1 || this.unfolded.has(first.kind);
        const shown = isOpen ? group : group.slice(0, FEW);
        const nodes = shown.flatMap((annotator) => [this.chip(annotator), ...this.traceOpener(annotator)]);
        if (shown.length < group.length) nodes.push(this.unfolder(group));
        return nodes;
    }

    unfolder(group) {
        const node = h("button", { class: "sl-chip sl-chip-more", type: "button" }, `${group.length - FEW} more`);
        return pressable(node, () => {
            this.unfolded.add(group[0].kind);
            this.build(this.view.editor.item.payload);
        });
    }

    chip(annotator) {
        const { editor } = this.view;
        const { name, status, note } = annotator;
        const shown = editor.visibility.shows(annotator);
        const what = status === "done" ? verdictWords(annotator) || plural(annotator.spans.length, "span") : STATUS_WORDS[status];
        const node = h("button", {
            class: "sl-chip", type: "button", "aria-pressed": String(shown), "data-status": status,
            title: shown ? "Shown; click to hide" : "Hidden; click to show",
        }, h("b", {}, editor.names.of(name)), ` ${kindOf(annotator)} · ${shown || status !== "done" ? what : "hidden"}`);
        if (note && (shown || status === "failed")) node.append(" ", h("i", { dir: "auto", title: note }, note));
        return pressable(node, () => editor.toggle(annotator));
    }

    /** Beside an annotator's chip, the way to its trace if it has one. */
    traceOpener(annotator) {
        if (!tellsOfItself(annotator)) return [];
        const name = this.view.editor.names.of(annotator.name);
        const node = h("button", {
            class: "sl-chip sl-chip-trace", type: "button", title: `How ${name} came to this (${keyName("t")})`,
            "aria-label": `Trace of ${name}`,
        }, "trace");
        return [pressable(node, () => this.view.trace.tell(annotator.name))];
    }
}

/** That others are hidden: how many, or where that is not to be known (null) that they would be. */
function hiddenWords(hidden) {
    if (hidden === null) return "Other people's marks are hidden: this dataset is reviewed blind.";
    return hidden ? `${plural(hidden, "annotator")} hidden: you review blind (see Queue).` : "";
}
