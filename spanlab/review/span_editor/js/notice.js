/** A line above the buttons: news that can be taken back, or a question, each answered by a key. */

import { h } from "./dom.js";
import { keyName } from "./keys.js";

/** One notice at a time; a question takes all keys until it is answered. */
export class Notice {
    constructor(view) {
        this.view = view;
        this.choices = [];
        this.asks = false;
        this.node = h("div", { class: "sl-notice", role: "status", tabindex: "-1", hidden: "" });
    }

    /**
     * Say what happened, or with `asks` what is to be decided.
     *
     * @param {{name: string, key: string, act: () => void}[]} choices the buttons, with their keys
     * @param {{asks?: boolean, item?: string | null}} about `item` is the one that it goes away with
     */
    show(text, choices, { asks = false, item = null } = {}) {
        this.choices = choices;
        this.asks = asks;
        this.item = item;
        this.node.setAttribute("role", asks ? "alertdialog" : "status");
        this.node.setAttribute("aria-label", text);
        this.node.replaceChildren(h("p", { dir: "auto" }, text), ...choices.map((choice) => this.button(choice)));
        this.node.hidden = false;
        if (asks) this.node.focus({ preventScroll: true });
        return true;
    }

    /** An item is shown: what was said or asked of another one goes. */
    shown(item) {
        if (!this.node.hidden && (this.asks || this.item !== null) && this.item !== item) this.hide();
    }

    hide() {
        const asked = this.asks;
        this.node.hidden = true;
        this.choices = [];
        this.asks = false;
        if (asked) this.view.focusAnswer();
    }

    /** Take a key if it is one of the choices; a question leaves no key but Tab to others. */
    key(spec, event) {
        const choice = this.choices.find((one) => one.key === spec);
        if (choice) choice.act();
        const pressed = this.node.contains(event.target) && event.target.tagName === "BUTTON" && ["Enter", "Space"].includes(spec);
        return Boolean(choice) || (this.asks && !pressed && !["Tab", "Shift+Tab"].includes(spec));
    }

    button({ name, key, act }) {
        const node = h("button", { class: "sl-button", type: "button" },
            h("span", {}, name), h("kbd", { "aria-hidden": "true" }, keyName(key)));
        node.addEventListener("click", act);
        return node;
    }
}
