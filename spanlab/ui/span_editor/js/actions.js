/** The row of buttons below the answer. */

import { h } from "./dom.js";
import { keyName } from "./keys.js";
import { likelyWords, percent } from "./words.js";

/** What a mouse can do with an item; all of it has a key, too. */
export class ActionBar {
    constructor(view) {
        const button = (name, command, className = "") => view.button(name, command, className);
        this.undo = button("Undo", "undo");
        this.redo = button("Redo", "redo");
        this.acceptAll = button("Accept likely", "acceptAll");
        const which = () => view.text.highlight(view.editor.item ? view.editor.likely() : []);
        for (const type of ["mouseenter", "focus"]) this.acceptAll.addEventListener(type, which);
        for (const type of ["mouseleave", "blur", "click"]) this.acceptAll.addEventListener(type, () => view.text.highlight([]));
        this.node = h("footer", { class: "sl-actions" },
            button("‹ Previous", "previousItem"), button("Next ›", "nextItem"), button("Items", "items"),
            h("span", { class: "sl-gap" }),
            this.undo, this.redo, this.acceptAll,
            button("Comment answer", "commentItem"), button("Keys", "help"),
            h("span", { class: "sl-gap" }),
            button("Skip", "skip"), button("Done", "done", "sl-primary"));
    }

    paint(history, likely) {
        const least = percent(Math.min(1, ...likely.map((piece) => piece.prob)));
        this.acceptAll.firstChild.textContent = likely.length ? `Accept ${likely.length} likely, from ${least}` : "Accept likely";
        this.acceptAll.title = likely.length ? `Accept ${likelyWords(likely)} (${keyName("A")})` : "No likely suggestion is open.";
        this.acceptAll.disabled = likely.length === 0;
        this.undo.disabled = !history.canUndo;
        this.redo.disabled = !history.canRedo;
    }
}
