/** The sheet that lists every key. */

import { h } from "./dom.js";
import { keyName } from "./keys.js";

// What a reviewer needs to know first; all others follow below.
const FIRST = ["nextSpan", "accept", "reject", "label", "comment", "selectThisWord", "draw", "done", "skip", "undo"];

/** A dialog over the editor, built from the key table. */
export class KeySheet {
    constructor(view) {
        this.view = view;
        this.node = h("div", { class: "sl-sheet", role: "dialog", "aria-modal": "true", "aria-label": "Keyboard shortcuts", tabindex: "0", hidden: "" });
    }

    get isOpen() {
        return !this.node.hidden;
    }

    listen(on) {
        on(this.node, "click", () => this.toggle(false));
        on(this.node, "keydown", (event) => event.key === "Tab" && event.preventDefault()); // what is behind it is covered
    }

    toggle(show = !this.isOpen) {
        this.node.hidden = !show;
        if (!show) return this.view.focusAnswer();
        const first = FIRST.flatMap((command) => this.view.editor.keys.find((key) => key.command === command) ?? []);
        const groups = new Map();
        for (const key of this.view.editor.keys) {
            if (!first.includes(key)) groups.set(key.group, [...(groups.get(key.group) ?? []), key]);
        }
        this.node.replaceChildren(h("div", { class: "sl-sheet-inner" }, h("h2", {}, "Keyboard shortcuts"),
            h("div", { class: "sl-sheet-groups" }, ...first.map((key) => list([key]))),
            h("div", { class: "sl-sheet-groups" },
                ...[...groups].map(([group, keys]) => h("section", {}, h("h3", {}, group), list(keys)))),
            h("p", { class: "sl-quiet" }, "With the mouse: drag over text to mark it (words; hold Alt or Shift for "
                + "characters), click a span for its tools, drag its ends to resize it.")));
        this.node.focus();
        return true;
    }
}

/** Keys, and what each does. */
function list(keys) {
    return h("dl", {}, ...keys.flatMap((key) => [
        h("dt", {}, ...key.keys.map((spec) => h("kbd", {}, keyName(spec)))), h("dd", {}, key.does),
    ]));
}
