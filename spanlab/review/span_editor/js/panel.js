/** The panel under the answer, or beside it: tabs that share its room. */

import { h, pressable } from "./dom.js";

/**
 * The card of the chosen span, and one page of several. `parts` are by tab what fills its page: its
 * `name`, its `node`, and if it needs to know, `shown()`, called when its tab is chosen.
 */
export class Panel {
    constructor(view, parts) {
        this.view = view;
        this.parts = parts;
        this.chosen = null; // by the reviewer; until then the item decides
        this.tabs = new Map();
        this.filled = {}; // by tab whether it has something to show, if it may have nothing
        for (const [id, { name, node }] of Object.entries(parts)) {
            node.classList.add("sl-page");
            node.id = `sl-page-${id}`;
            node.setAttribute("role", "tabpanel");
            node.setAttribute("aria-label", name);
            const tab = h("button", { class: "sl-tab", type: "button", role: "tab", "aria-controls": node.id },
                h("span", {}, name), h("span", { class: "sl-count" }));
            this.tabs.set(id, pressable(tab, () => this.choose(id)));
        }
        this.list = h("div", { class: "sl-tabs", role: "tablist", "aria-label": "Beside the answer" }, ...this.tabs.values());
        this.node = h("aside", { class: "sl-right", "aria-label": "Evidence and spans" },
            h("div", { class: "sl-panel-head" }, this.list),
            h("div", { class: "sl-panel-body" }, view.card.node,
                h("div", { class: "sl-pages" }, ...Object.values(parts).map(({ node }) => node))));
        this.list.addEventListener("keydown", (event) => this.key(event));
    }

    /** Another item is open: without a choice that it has a tab for, its passages come first, then its spans. */
    open({ passages }) {
        const has = this.chosen && (this.filled[this.chosen] ?? !this.tabs.get(this.chosen).hidden);
        this.show(has ? this.chosen : passages.length > 0 ? "evidence" : "spans");
    }

    /** Show a tab from now on, on other items too; questions are about one item, and the next begins with its evidence. */
    choose(id) {
        if (this.shown !== id) this.before = this.shown;
        if (id !== "questions") this.chosen = id;
        this.show(id);
        return true;
    }

    /** Bring a page into sight, unless there is room for it beside the one that is chosen. */
    reveal(id) {
        if (!this.parts[id].node.checkVisibility()) this.choose(id);
    }

    /** The tab that was shown before this one. */
    back() {
        return this.choose(this.before ?? "spans");
    }

    /** The tab after this one; after the last comes the first. */
    next(step = 1) {
        const ids = [...this.tabs].filter(([, tab]) => !tab.hidden).map(([id]) => id);
        return this.choose(ids.at((ids.indexOf(this.shown) + step) % ids.length));
    }

    /** Say how many things a tab holds. */
    count(id, number) {
        this.tabs.get(id).lastChild.textContent = number > 0 ? ` ${number}` : "";
    }

    /** Leave out a tab that has nothing to show; where its key opens it all the same, it is there. */
    fill(id, filled) {
        this.filled[id] = filled;
        this.tabs.get(id).hidden = !filled && this.shown !== id;
    }

    show(id) {
        if (this.shown === id) return;
        this.shown = this.node.dataset.tab = id;
        for (const [other, tab] of this.tabs) {
            tab.setAttribute("aria-selected", String(other === id));
            tab.tabIndex = other === id ? 0 : -1;
            this.parts[other].node.classList.toggle("sl-shown", other === id);
            if (other in this.filled) this.fill(other, this.filled[other]);
        }
        this.parts[id].shown?.();
    }

    key(event) {
        const steps = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 };
        const step = steps[event.key];
        if (!step) return;
        event.preventDefault();
        this.next(step);
        this.tabs.get(this.shown).focus();
    }
}
