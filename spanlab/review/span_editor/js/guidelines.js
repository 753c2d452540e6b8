/** The sheet with the dataset's guidelines, as Python parsed them: elements by name, text as text. */

import { h } from "./dom.js";

const TAGS = new Set([
    ..."p ul ol li blockquote hr strong em s br code pre a".split(" "),
    ..."h1 h2 h3 h4 h5 h6 table thead tbody tr th td".split(" "),
]);

/** Shown by key, and of itself at the first item that is opened, until the reader confirms the version. */
export class Guidelines {
    constructor(view) {
        this.view = view;
        this.version = 0;
        this.read = null; // the version that Python has as confirmed; null until it has said so
        this.confirmed = 0; // the one that is to be told
        this.shown = 0; // the one that has come up by itself
        this.confirm = h("button", { class: "sl-button", type: "button" }, "I have read them", h("kbd", {}, "↵"));
        this.close = h("button", { class: "sl-button", type: "button" }, "Close", h("kbd", {}, "g"));
        this.which = h("span", { class: "sl-quiet" });
        this.body = h("div", { class: "sl-guidelines" });
        this.node = h("div", { class: "sl-sheet", role: "dialog", "aria-modal": "true", "aria-label": "Guidelines", tabindex: "-1", hidden: "" },
            h("div", { class: "sl-sheet-inner sl-sheet-text" },
                h("header", {}, h("h2", {}, "Guidelines"), this.which, this.confirm, this.close), this.body));
    }

    get isOpen() {
        return !this.node.hidden;
    }

    listen(on) {
        on(this.close, "click", () => this.toggle(false));
        on(this.confirm, "click", () => this.confirmRead());
        on(this.node, "click", (event) => event.target === this.node && this.toggle(false));
    }

    take({ version, tree }) {
        if (this.version === version && this.tree === JSON.stringify(tree)) return;
        this.version = version;
        this.tree = JSON.stringify(tree);
        this.which.textContent = `Version ${version}`;
        this.body.replaceChildren(...tree.map(element));
    }

    get hasText() {
        return this.tree !== undefined && this.tree !== "[]";
    }

    toggle(show = !this.isOpen) {
        if (show && !this.hasText) return this.view.say("This dataset has no guidelines. The lead writes them on the Campaign page.", true);
        this.node.hidden = !show;
        if (!show) return this.view.focusAnswer();
        this.confirm.hidden = this.isRead;
        (this.isRead ? this.node : this.confirm).focus();
        return true;
    }

    get isRead() {
        return Math.max(this.read ?? 0, this.confirmed) >= this.version;
    }

    /** An item was opened: show guidelines that its reader has not confirmed. */
    atFirstItem() {
        const { typing } = this.view;
        if (!this.hasText || this.read === null || this.isRead || this.shown === this.version || typing.isOn || typing.held) return;
        this.shown = this.version;
        this.toggle(true);
    }

    confirmRead() {
        this.confirmed = this.version;
        this.toggle(false);
        this.view.editor.outbox.send();
    }

    /** The version to tell Python of, 0 for none. */
    wanted() {
        return this.confirmed > (this.read ?? 0) ? this.confirmed : 0;
    }

    /** Python says which version the reader has confirmed; of another reader or dataset anew. */
    receive(version, isOther) {
        this.read = version;
        if (isOther) this.confirmed = this.shown = 0;
        if (this.view.editor.item) this.atFirstItem();
    }
}

/** A node of the tree; a name that is not known here is no element, whoever sent it. */
function element(node) {
    if (typeof node === "string") return node;
    const [tag, attributes, inside] = node;
    const known = TAGS.has(tag) ? tag : "span";
    const kept = {};
    if (known === "a" && /^(https?:|mailto:)/i.test(attributes.href)) {
        Object.assign(kept, { href: attributes.href, target: "_blank", rel: "noopener noreferrer" });
    }
    if (known === "ol") kept.start = attributes.start;
    return h(known, kept, ...inside.map(element));
}
