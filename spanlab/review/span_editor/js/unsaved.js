/** What was typed for a dataset or an item that is not there any more: named, copied, saved as a file. */

import { h } from "./dom.js";
import { Outbox } from "./outbox.js";
import { save } from "./save_picture.js";
import { plural } from "./words.js";

const NAMED = 5; // items that are named before the rest is counted

/** Mount the list in place of the editor. Called by Streamlit, with the dataset, its new name, or the item in it. */
export default function mount({ parentElement, data }) {
    const wire = (globalThis.spanlab ??= {});
    const unsaved = new Unsaved(wire.outbox ??= new Outbox(), data);
    parentElement.querySelector(".sl-unsaved")?.remove();
    parentElement.append(unsaved.node);
    unsaved.gather();
}

/** The changes to one dataset, or to one item of it, that no server has stored. */
class Unsaved {
    constructor(outbox, { dataset, renamed, item }) {
        this.outbox = outbox;
        this.dataset = dataset;
        this.renamed = renamed;
        this.item = item;
        this.said = h("p", { role: "status" });
        this.buttons = h("div", {},
            this.button("Copy", () => this.copy()),
            this.button("Download", () => save(new Blob([this.text()], { type: "application/json" }), `${dataset} unsaved.json`)),
            this.button("Discard", () => this.discard()));
        this.node = h("section", { class: "sl-unsaved", "aria-label": "Changes not saved", hidden: "" }, this.said, this.buttons);
    }

    async gather() {
        await this.outbox.adopt().catch(() => null); // storage may be forbidden
        if (this.renamed) this.follow();
        this.paint();
    }

    writes() {
        const here = this.outbox.writes.filter((write) => write.dataset === (this.renamed ?? this.dataset));
        return this.item ? here.filter((write) => write.item === this.item) : here;
    }

    /** It is the same dataset under another name: what was typed goes there. */
    follow() {
        for (const write of this.outbox.writes) {
            if (write.dataset !== this.dataset) continue;
            write.dataset = this.renamed;
            if (!write.stale) delete write.held; // only the name was wrong
        }
        this.outbox.store();
    }

    paint() {
        const writes = this.writes();
        this.node.hidden = writes.length === 0;
        this.buttons.hidden = Boolean(this.renamed);
        const items = [...new Set(writes.map((write) => write.item))];
        const named = items.slice(0, NAMED).join(", ") + (items.length > NAMED ? ", …" : "");
        const what = `${plural(writes.length, "change")} to ${plural(items.length, "item")} (${named})`;
        this.say(this.renamed
            ? `${what} ${writes.length === 1 ? "is" : "are"} not saved yet: this browser keeps what you typed, and saves it when you go on.`
            : `${what} could not be saved. This browser keeps what you typed.`);
    }

    text() {
        return JSON.stringify(this.writes(), null, 1);
    }

    async copy() {
        try {
            await navigator.clipboard.writeText(this.text());
            this.say("Copied, as JSON.");
        } catch {
            this.say("The browser does not let this page copy: take Download.");
        }
    }

    discard() {
        const writes = this.writes();
        if (!confirm(`Discard ${plural(writes.length, "change")} permanently?`)) return;
        this.outbox.writes = this.outbox.writes.filter((write) => !writes.includes(write));
        this.outbox.store();
        this.paint();
    }

    say(words) {
        this.said.textContent = words;
    }

    button(name, act) {
        const node = h("button", { type: "button" }, name);
        node.addEventListener("click", act);
        return node;
    }
}
