/** Adjudication: under the text a lane for every annotator, and what can be taken from them. */

import { agreed, soleSource } from "./agreed.js";
import { h, pressable } from "./dom.js";
import { newId } from "./ids.js";
import { byPlace } from "./marks.js";
import { kindOf, plural } from "./words.js";

const MOST = 9; // lanes: there are nine digits to choose one
const KINDS = ["person", "detector"]; // votes and gold labels are made of what these say

/** The annotators of the open item who have finished it: their lanes, keys and comments. */
export class Lanes {
    constructor(view) {
        this.view = view;
        this.shown = [];
        this.node = h("div", { class: "sl-lanes", role: "group", "aria-label": "Annotators' lanes", hidden: "" });
    }

    get isOn() {
        return this.view.editor.adjudicating;
    }

    build(item) {
        this.node.hidden = !this.isOn;
        if (!this.isOn) return;
        const hidden = this.view.editor.hidden();
        this.raters = KINDS.flatMap((kind) => item.payload.annotators.filter((one) => (
            one.kind === kind && one.status === "done" && !hidden.has(one.name)
        ))).map((one, index) => ({ ...one, number: index + 1, spans: one.spans.filter((span) => span.likely) }));
        this.shown = this.raters.slice(0, MOST);
        this.view.text.node.style.setProperty("--sl-lanes", String(this.shown.length));
        const more = this.raters.length - this.shown.length;
        this.node.replaceChildren(
            ...this.shown.map((lane) => this.chip(lane)),
            more > 0 ? h("span", { class: "sl-quiet" }, `and ${more} more, counted below`) : "",
            this.view.button(`Majority of ${this.counted()}`, "takeMajority"), this.view.button("Union", "takeUnion"),
            this.view.button("No spans", "takeNone"));
    }

    /** People, or where none has finished the item, detectors: whose majority and union it is. */
    voters() {
        const people = this.raters.filter((one) => one.kind === "person");
        return people.length > 0 ? people : this.raters;
    }

    counted() {
        const voters = this.voters();
        if (voters[0]?.kind === "person") return voters.length === 1 ? "1 person" : `${voters.length} people`;
        return plural(voters.length, "detector");
    }

    chip(lane) {
        const node = h("button", {
            class: "sl-chip sl-lane", type: "button", "data-lane": String(lane.number), "data-kind": lane.kind,
            style: `--sl-lane: var(--sl-lane-${lane.number})`,
            title: `Take the spans of ${lane.name} (${lane.number})`,
        }, h("kbd", { "aria-hidden": "true" }, String(lane.number)), " ", h("b", {}, lane.name),
        ` ${lane.kind === "person" ? "" : `${kindOf(lane)} · `}${plural(lane.spans.length, "span")}`);
        if (lane.note) node.append(" ", h("i", { dir: "auto", title: lane.note }, lane.note));
        return pressable(node, () => this.take(lane.number));
    }

    // -- what is painted

    /** One's own spans in the lane next to the text, below it those of each annotator in its own. */
    entries(marks, item) {
        const depth = this.shown.length;
        const found = marks.map((mark) => ({ mark, lane: mark.kind === "own" ? depth : null, depth }));
        const numbers = new Map(this.shown.map((lane) => [lane.name, lane]));
        for (const { key, start, end, members } of item.groups) {
            for (const { annotator, likely } of members) {
                const lane = numbers.get(annotator);
                if (!lane || !likely) continue;
                const mark = {
                    id: `lane:${lane.number}:${key}`, kind: "lane", number: lane.number, by: lane.kind,
                    start, end, prob: 0, label: null,
                };
                found.push({ mark, lane: depth - lane.number, depth });
            }
        }
        return found.sort((one, two) => byPlace(one.mark, two.mark));
    }

    // -- what is taken

    take(number) {
        const lane = this.shown[number - 1];
        if (!lane) return this.view.say(`There is no lane ${number}.`, true);
        return this.replace(lane.spans.map((span) => soleSource(lane.name, span)), `Taken from ${lane.name}`);
    }

    takeMajority() {
        const voters = this.voters();
        const marks = agreed(this.view.editor.item.text, voters, Math.floor(voters.length / 2) + 1, "majority");
        return this.replace(marks, `Taken by the majority of ${this.counted()}`);
    }

    takeUnion() {
        const marks = agreed(this.view.editor.item.text, this.voters(), 1, "union");
        return this.replace(marks, `Taken from any of ${this.counted()}`);
    }

    replace(marks, said) {
        const { editor } = this.view;
        if (!editor.apply({ kind: "replace", spans: marks.map(newId), marks })) return true;
        editor.focus = [...editor.marks.values()].find((mark) => mark.kind === "own")?.id ?? editor.firstMark();
        this.view.focusChanged({ scroll: false });
        return this.view.say(`${said}: ${plural(marks.length, "span")}.`, true);
    }
}
