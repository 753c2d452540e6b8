/** The tab of claims: a list with their verdicts, and what is known of the chosen one. */

import { ClaimCard } from "./claim_card.js";
import { ClaimLanes } from "./claim_lanes.js";
import { rowsOf } from "./claims.js";
import { h } from "./dom.js";
import { runIn } from "./keys.js";
import { shorten } from "./words.js";
import { verdictNode } from "./verdicts.js";

const SIGNS = { own: "■", open: "◌", rejected: "✕" };
const KINDS = { own: "your verdict", open: "suggestion", rejected: "rejected" };
const LIT = "sl-claim";

/** Claims of the open item; one of them may be chosen, and its words are lit in the answer. */
export class ClaimPanel {
    constructor(view) {
        this.view = view;
        this.rows = [];
        this.chosen = null; // the key of a row
        this.lit = false;
        this.list = h("div", { class: "sl-claim-list", role: "listbox", tabindex: "0", "aria-label": "Claims" });
        this.card = new ClaimCard(this);
        this.lanes = new ClaimLanes(this);
        this.opener = view.button("Claims", "claims"); // for the mouse, where no tab of claims is
        this.opener.className = "sl-tab";
        this.write = view.button("Write a claim", "writeClaim");
        this.none = h("p", { class: "sl-quiet" }, "No annotator has taken claims out of this answer.");
        this.side = h("div", { class: "sl-claim-side" }, this.lanes.node, this.none, this.list, this.write);
        this.node = h("section", { class: "sl-claims" }, this.side, this.card.node);
    }

    listen(on) {
        on(this.list, "click", (event) => {
            const row = event.target.closest("[data-claim]");
            if (row) this.choose(this.rows[Number(row.dataset.claim)].key);
        });
    }

    get editor() {
        return this.view.editor;
    }

    get isOpen() {
        return this.view.panel.shown === "claims";
    }

    get row() {
        return this.rows.find(({ key }) => key === this.chosen) ?? null;
    }

    /** Run the command of a key pressed in here; false if the key means what it means elsewhere. */
    key(spec, event) {
        return runIn(this.editor, this.editor.claimBindings, spec, event);
    }

    // -- which claim

    open(item) {
        if (this.item !== item) this.chosen = null;
        this.item = item;
        this.dim();
    }

    /** Go to the list, or back to the answer. */
    toggle() {
        if (this.node.contains(document.activeElement)) return this.leave();
        this.view.panel.choose("claims");
        this.list.focus({ preventScroll: true });
        if (this.rows.length === 0) return this.view.say("No claims. Press w to write one.");
        return this.choose(this.row?.key ?? (this.rows.find(({ kind }) => kind === "open") ?? this.rows[0]).key);
    }

    leave() {
        this.dim();
        return this.view.focusAnswer() ?? true;
    }

    step(by) {
        if (this.rows.length === 0) return this.view.say("No claims here.");
        const at = this.rows.findIndex(({ key }) => key === this.chosen) + by;
        return this.choose(this.rows.at(at % this.rows.length).key);
    }

    /** Choose a claim, light its words and open its evidence. */
    choose(key) {
        this.chosen = key;
        this.lit = true;
        const { row } = this;
        if (row?.source) this.view.geometry.scrollTo(this.editor.item.text.unit(row.source.start));
        this.view.focusChanged();
        return this.view.say(row ? described(row) : "This claim is gone.");
    }

    /** The next claim that is not decided, from the chosen one on. */
    toNextOpen() {
        const at = Math.max(0, this.rows.findIndex(({ key }) => key === this.chosen));
        const next = [...this.rows.slice(at), ...this.rows.slice(0, at)].find(({ kind }) => kind === "open");
        if (next) this.choose(next.key);
    }

    /** The words of the answer belong to spans again. */
    dim() {
        this.lit = false;
        CSS.highlights?.delete(LIT);
    }

    /** The evidence of the chosen claim, null if none is lit. */
    evidence() {
        if (!this.lit || !this.isOpen || !this.row) return null;
        const { own, best, members } = this.row;
        return [own, best, ...members].find((one) => one?.evidence.length > 0)?.evidence ?? [];
    }

    // -- painting

    /** Paint what changed; without being looked at, it only counts. */
    paint() {
        const { item } = this.editor;
        this.rows = rowsOf(item, this.editor.hidden());
        this.view.panel.count("claims", this.rows.length);
        this.view.panel.fill("claims", this.rows.length > 0 || this.view.hints.byTouch); // a finger has no key for it
        this.opener.hidden = !this.view.panel.tabs.get("claims").hidden;
        if (!this.isOpen) return this.dim();
        this.none.hidden = this.rows.length > 0;
        this.lanes.paint();
        this.list.replaceChildren(...this.rows.map((row, index) => this.rowNode(row, index)));
        const chosen = this.list.querySelector('[aria-selected="true"]');
        if (chosen) this.list.setAttribute("aria-activedescendant", chosen.id);
        else this.list.removeAttribute("aria-activedescendant");
        chosen?.scrollIntoView({ block: "nearest" });
        this.card.paint(this.row);
        return this.light();
    }

    /** The verdict of one's own, or those of the annotators; who decides between these sees both. */
    chips(row) {
        const own = row.own ? [verdictNode(row.own.verdict)] : [];
        if (this.view.lanes.isOn) return [...own, ...this.lanes.said(row)];
        const members = row.members.length > 0 ? row.members : [row.best];
        return row.own ? own : [...new Set(members.map(({ verdict }) => verdict))].map(verdictNode);
    }

    rowNode(row, index) {
        return h("div", {
            class: `sl-claim sl-row-${row.kind}`, role: "option", id: `sl-claim-${index}`, "data-claim": String(index),
            "aria-selected": String(row.key === this.chosen), "aria-label": described(row),
        },
        h("span", { class: "sl-sign", "aria-hidden": "true" }, SIGNS[row.kind]),
        h("span", { class: "sl-claim-chips" }, ...this.chips(row)),
        h("span", { class: "sl-claim-text", dir: "auto", lang: this.editor.item.payload.lang }, shorten(row.text, 300)));
    }

    light() {
        CSS.highlights?.delete(LIT);
        const source = this.lit ? this.row?.source : null;
        if (!source || !CSS.highlights) return;
        const { text } = this.editor.item;
        const [from, to] = [this.view.geometry.position(text.unit(source.start)), this.view.geometry.position(text.unit(source.end))];
        const range = document.createRange();
        range.setStart(from.node, from.offset);
        range.setEnd(to.node, to.offset);
        CSS.highlights.set(LIT, new Highlight(range));
    }
}

function described(row) {
    const said = row.own ?? row.best;
    const verdict = said.verdict ? said.verdict.replaceAll("-", " ") : "no verdict";
    return `${row.text} ${verdict}, ${KINDS[row.kind]}`;
}
