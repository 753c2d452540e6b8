/** The sheet with the dataset's guidelines, as Python parsed them: elements by name, text as text. */

import { h } from "./dom.js";

const STORED = "spanlab.guidelines";
const TAGS = new Set([
    ..."p ul ol li blockquote hr strong em s br code pre a".split(" "),
    ..."h1 h2 h3 h4 h5 h6 table thead tbody tr th td".split(" "),
]);

/** Shown by key, and of itself once for each version, at the first item that is opened. */
export class Guidelines {
    constructor(view) {
        this.view = view;
        this.version = 0;
        this.close = h("button", { class: "sl-button", type: "button" }, "Close", h("kbd", {}, "g"));
        this.which = h("span", { class: "sl-quiet" });
        this.body = h("div", { class: "sl-guidelines" });
        this.node = h("div", { class: "sl-sheet", role: "dialog", "aria-modal": "true", "aria-label": "Guidelines", tabindex: "-1", hidden: "" },
            h("div", { class: "sl-sheet-inner sl-sheet-text" },
                h("header", {}, h("h2", {}, "Guidelines"), this.which, this.close), this.body));
    }

    get isOpen() {
        return !this.node.hidden;
    }

    listen(on) {
        on(this.close, "click", () => this.toggle(false));
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
        if (show && !this.hasText) return this.view.say("This dataset has no guidelines. Its settings on the Datasets page take some.", true);
        this.node.hidden = !show;
        if (!show) return this.view.focusAnswer();
        this.remember();
        this.node.focus();
        return true;
    }

    /** An item was opened: show guidelines that this browser has not shown yet. */
    atFirstItem() {
        const { dataset } = this.view.editor.navigation.place;
        if (this.hasText && seen()[dataset] !== this.version) this.toggle(true);
    }

    remember() {
        const { dataset } = this.view.editor.navigation.place ?? {};
        if (!dataset) return;
        try {
            localStorage.setItem(STORED, JSON.stringify({ ...seen(), [dataset]: this.version }));
        } catch {
            // a full or forbidden storage: they are shown again
        }
    }
}

function seen() {
    try {
        return JSON.parse(localStorage.getItem(STORED)) ?? {};
    } catch {
        return {};
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
