/** The row of buttons below the answer. */

import { h } from "./dom.js";

/** What a mouse can do with an item; all of it has a key, too. */
export class ActionBar {
    constructor(view) {
        const button = (name, command, className = "") => view.button(name, command, className);
        this.undo = button("Undo", "undo");
        this.redo = button("Redo", "redo");
        this.acceptAll = button("Accept likely", "acceptAll");
        this.node = h("footer", { class: "sl-actions" },
            button("‹ Previous", "previousItem"), button("Next ›", "nextItem"),
            h("span", { class: "sl-gap" }),
            this.undo, this.redo, this.acceptAll,
            button("Comment answer", "commentItem"), button("Keys", "help"),
            h("span", { class: "sl-gap" }),
            button("Skip", "skip"), button("Done", "done", "sl-primary"));
    }

    paint(history, likely) {
        this.acceptAll.firstChild.textContent = likely ? `Accept likely ${likely}` : "Accept likely";
        this.acceptAll.disabled = likely === 0;
        this.undo.disabled = !history.canUndo;
        this.redo.disabled = !history.canRedo;
    }
}
