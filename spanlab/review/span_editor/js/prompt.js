/** The line in which a comment is typed. */

import { h } from "./dom.js";

/** Asks for one line of text below the answer. */
export class Prompt {
    constructor(view) {
        this.view = view;
        this.node = h("form", { class: "sl-ask", hidden: "" });
    }

    get isOpen() {
        return !this.node.hidden;
    }

    listen(on) {
        on(this.node, "submit", (event) => {
            event.preventDefault();
            this.close(this.node.querySelector("input").value);
        });
    }

    /** Ask, and call `done` with what is typed unless the person cancels. */
    ask(title, text, done) {
        this.done = done;
        const input = h("input", { type: "text", "aria-label": title, maxlength: "10000", dir: "auto" });
        input.value = text;
        const cancel = h("button", { type: "button", class: "sl-button" }, "Cancel", h("kbd", {}, "Esc"));
        cancel.addEventListener("click", () => this.close(null));
        this.node.replaceChildren(h("label", {}, title), input,
            h("button", { type: "submit", class: "sl-button sl-primary" }, "Save", h("kbd", {}, "↵")), cancel);
        this.node.hidden = false;
        return this.view.typing.into(input);
    }

    key(event) {
        if (event.key !== "Escape") return;
        event.preventDefault();
        this.close(null);
    }

    close(typed) {
        const { done } = this;
        this.done = null;
        this.node.hidden = true;
        this.view.focusAnswer();
        if (typed !== null) done?.(typed);
    }
}
