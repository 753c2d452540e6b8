/** Adding evidence by hand: the address of a page, or a text. */

import { h, pressable } from "./dom.js";

const SOON = 300; // milliseconds until a page that is being read is asked for again

/** A form under the passages, which a button opens; Python fetches the page and stores the passage. */
export class EvidenceForm {
    constructor(evidence) {
        this.view = evidence.view;
        this.number = 0;
        this.sent = null; // what Python has not answered yet
        this.url = h("input", { class: "sl-field", type: "url", placeholder: "https://…", maxlength: "4000", "aria-label": "Address of a page" });
        this.title = h("input", { class: "sl-field", type: "text", placeholder: "Title (optional)", maxlength: "1000", dir: "auto", "aria-label": "Title" });
        this.text = h("textarea", { class: "sl-field", rows: "3", dir: "auto", placeholder: "Or paste the text of the passage", "aria-label": "Text of the passage" });
        this.button = h("button", { class: "sl-button", type: "submit" }, "Add passage");
        this.again = h("a", { class: "sl-button", hidden: "" }, "Detect again");
        this.said = h("p", { class: "sl-quiet", role: "status", dir: "auto" });
        this.node = h("form", { class: "sl-evidence-form", hidden: "", "aria-label": "Add evidence" }, this.url, this.title, this.text,
            h("div", { class: "sl-layout" }, this.button, this.again), this.said);
        this.opener = pressable(h("button", { class: "sl-button", type: "button", title: "Add evidence", "aria-label": "Add evidence", "aria-expanded": "false" }, "+ Evidence"),
            () => this.toggle(this.node.hidden));
        this.node.addEventListener("submit", (event) => {
            event.preventDefault();
            this.send();
        });
        this.node.addEventListener("keydown", (event) => {
            if (event.key === "Escape" && !event.isComposing) this.toggle(false);
        });
    }

    toggle(open) {
        this.node.hidden = !open;
        this.opener.setAttribute("aria-expanded", String(open));
        if (!open) return this.view.focusAnswer();
        this.view.panel.reveal("evidence");
        return this.url.focus();
    }

    send() {
        const { navigation, outbox } = this.view.editor;
        const [url, text, title] = [this.url, this.text, this.title].map(({ value }) => value.trim());
        if (!url && !text) return this.say("Give the address of a page, or paste a text.");
        if (navigation.open === null) return this.say("Still opening.");
        this.number += 1;
        this.sent = { number: this.number, item: navigation.open, url, text, title };
        this.say(text ? "Adding the passage …" : "Reading the page …");
        return outbox.send();
    }

    /** What the editor has to ask Python for, null if nothing. */
    wanted() {
        return this.sent;
    }

    /** Take in what became of it; the item is fetched anew with its new passage. */
    receive({ number, item, there, problem }) {
        if (number !== this.sent?.number) return;
        if (!there && !problem) {
            setTimeout(() => this.view.editor.outbox.send(), SOON);
            return;
        }
        this.sent = null;
        if (problem) {
            this.say(`Not added: ${problem}`);
            return;
        }
        for (const field of [this.url, this.text, this.title]) field.value = "";
        this.say("Added. Detectors read it when they run again.");
        const { navigation, cache } = this.view.editor;
        cache.items.delete(item);
        if (navigation.open === item) navigation.reopen();
    }

    /** Another item is shown. */
    follow(item, dataset) {
        if (this.item === item) return;
        this.item = item;
        if (!this.sent) this.said.textContent = "";
        this.again.hidden = false;
        this.again.href = `detect?${new URLSearchParams({ dataset, item })}`;
    }

    say(text) {
        this.said.textContent = text;
        this.view.say(text);
    }
}
