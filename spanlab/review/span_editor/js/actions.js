/** The row of buttons below the answer. */

import { h } from "./dom.js";
import { keyName } from "./keys.js";
import { likelyWords } from "./words.js";

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
            view.pointer.mark,
            short(button("‹ Previous", "previousItem"), "‹", " Previous"), short(button("Next ›", "nextItem"), "", "Next ", "›"),
            button("Items", "items"),
            h("span", { class: "sl-gap" }),
            this.undo, this.redo,
            short(button("Comment answer", "commentItem"), "Comment", " answer"), button("Shortcuts", "help"), this.acceptAll,
            h("span", { class: "sl-gap" }),
            button("Skip", "skip"), button("Done", "done", "sl-primary"));
    }

    paint(history, likely) {
        short(this.acceptAll, `Accept ${likely.length} likely`, "");
        this.acceptAll.title = `Accept ${likelyWords(likely)} (${keyName("A")})`;
        this.acceptAll.style.visibility = likely.length === 0 ? "hidden" : ""; // nothing else moves
        this.undo.disabled = !history.canUndo;
        this.redo.disabled = !history.canRedo;
    }
}

/** Name a button such that its middle is left out on the screen, not aloud, where there is little room. */
function short(button, before, middle, after = "") {
    button.firstChild.replaceChildren(before, h("span", { class: "sl-middle" }, middle), after);
    return button;
}
