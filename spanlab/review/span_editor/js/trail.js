/** The way of the chosen claim from the answer to its sources. */

import { h, pressable } from "./dom.js";
import { savePng, saveSvg } from "./save_picture.js";
import { DARK, LIGHT, coloured, drawTrail, roundWords } from "./trail_picture.js";

/** A picture that can be walked by the arrow keys and saved; empty where no trail is told. */
export class Trail {
    constructor(panel) {
        this.panel = panel;
        this.told = null;
        this.box = h("div", { class: "sl-trail-box", tabindex: "0", role: "group", "aria-label": "Trail: arrow keys walk along it" });
        this.read = h("div", { class: "sl-trail-read", role: "status" });
        this.rounds = h("ol", { class: "sl-steps" });
        this.node = h("section", { class: "sl-trail-view", "aria-label": "Trail", hidden: "" },
            h("div", { class: "sl-trail-head" }, h("h2", { class: "sl-title" }, "Trail"), this.saver("SVG", saveSvg), this.saver("PNG", savePng)),
            this.box, this.read, this.rounds);
        this.box.addEventListener("keydown", (event) => this.key(event));
        this.box.addEventListener("focusin", (event) => this.tell(event.target.dataset.node));
    }

    get editor() {
        return this.panel.editor;
    }

    saver(name, save) {
        const does = `Save the picture as ${name}`;
        const button = h("button", { class: "sl-button", type: "button", title: does, "aria-label": does }, name);
        return pressable(button, () => save(coloured(this.picture.cloneNode(true), LIGHT), `${this.editor.item.id} claim ${this.trail.claim + 1}`));
    }

    /** Show the trail that an annotator tells of a claim; `teller` is its member of the claim, or null. */
    paint(teller) {
        this.teller = teller ?? null;
        const { item } = this.editor;
        const about = teller ? item.traces?.get(teller.annotator) : null;
        if (teller && about === undefined) this.editor.outbox.send();
        const trail = about?.trails?.find(({ claim }) => claim === teller.index) ?? null;
        this.node.hidden = trail === null;
        if (trail === this.trail) return;
        this.trail = trail;
        this.read.replaceChildren();
        this.box.replaceChildren();
        this.rounds.replaceChildren();
        if (trail === null) return;
        const answer = trail.nodes[0];
        this.picture = drawTrail(trail, { text: teller.text, node: answer.id, verdict: teller.verdict }, item.payload.lang);
        const dark = this.panel.view.root.classList.contains("sl-dark");
        this.box.append(coloured(this.picture, dark ? DARK : LIGHT));
        this.rounds.replaceChildren(...trail.rounds.map(roundNode));
    }

    /** Whose trace is needed for the chosen claim, null if none. */
    wanted() {
        return this.panel.isOpen ? this.teller?.annotator ?? null : null;
    }

    // -- the walk

    enter() {
        if (this.node.hidden) return this.panel.view.say("This claim has no trail.", true);
        this.node.scrollIntoView({ block: "nearest" });
        return this.go(this.trail.nodes[0].id);
    }

    go(id) {
        const node = [...this.picture.querySelectorAll("[data-node]")].find((one) => one.dataset.node === id);
        node?.focus({ preventScroll: true });
        node?.scrollIntoView({ block: "nearest", inline: "nearest" });
        return true;
    }

    key(event) {
        const walk = { ArrowLeft: () => this.along(-1), ArrowRight: () => this.along(1), ArrowUp: () => this.across(-1), ArrowDown: () => this.across(1) }[event.key];
        if (event.key === "Escape") this.panel.list.focus({ preventScroll: true });
        else if (walk) this.go(walk() ?? this.at?.id ?? this.trail.nodes[0].id);
        else return;
        event.preventDefault();
        event.stopPropagation();
    }

    /** The node that was focused last. */
    get at() {
        const id = document.activeElement?.dataset?.node;
        return this.trail.nodes.find((node) => node.id === id) ?? null;
    }

    /** Along an edge: left to a source, right to what was made from it. */
    along(step) {
        const { at } = this;
        if (!at) return null;
        return step < 0 ? at.sources[0] : this.trail.nodes.find((node) => node.sources.includes(at.id))?.id;
    }

    /** Up and down among the nodes of a stage. */
    across(step) {
        const there = this.trail.nodes.filter((node) => node.stage === this.at?.stage);
        return there[there.indexOf(this.at) + step]?.id;
    }

    /** Say in full what is quoted of a node. */
    tell(id) {
        const node = this.trail?.nodes.find((one) => one.id === id);
        if (!node) return;
        const quotes = node.quotes.map((quote) => h("q", { dir: "auto" }, quote.text.trim()));
        this.read.replaceChildren(h("b", { dir: "auto" }, node.id), ` (stage ${node.stage}) `,
            ...(quotes.length > 0 ? quotes : [h("span", { dir: "auto" }, node.beginning)]));
    }
}

function roundNode(round, index) {
    return h("li", { dir: "auto" }, h("span", { dir: "ltr" }, roundWords(round, index)),
        round.reason ? h("p", { class: "sl-reason", dir: "auto" }, round.reason) : "",
        ...round.summaries.map((summary) => h("p", { class: "sl-quiet", dir: "auto" }, summary)));
}
