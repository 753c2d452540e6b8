/** Adjudication: under the text a lane for every annotator, and what can be taken from them. */

import { agreed, soleSource } from "./agreed.js";
import { h, pressable } from "./dom.js";
import { newId } from "./ids.js";
import { byPlace } from "./marks.js";
import { kindOf, plural, verdictWords } from "./words.js";

const MOST = 9; // lanes at a time: there are nine digits to choose one
const KINDS = ["person", "detector"]; // votes and gold labels are made of what these say

/** The annotators of the open item who have finished it: their lanes, keys and comments. */
export class Lanes {
    constructor(view) {
        this.view = view;
        this.raters = [];
        this.shown = [];
        this.first = 0; // of the raters whose lanes are shown
        this.node = h("div", { class: "sl-lanes", role: "group", "aria-label": "Annotators' lanes", hidden: "" });
    }

    get isOn() {
        return this.view.editor.adjudicating;
    }

    build(item) {
        this.node.hidden = !this.isOn;
        if (!this.isOn) return;
        if (this.item !== item) this.first = 0;
        this.item = item;
        const { names } = this.view.editor;
        const hidden = this.view.editor.hidden();
        this.raters = KINDS.flatMap((kind) => names.ordered(item.payload.annotators).filter((one) => (
            one.kind === kind && one.status === "done" && !hidden.has(one.name)
        ))).map((one) => ({ ...one, shown: names.of(one.name), spans: one.spans.filter((span) => span.likely) }));
        this.shown = this.raters.slice(this.first, this.first + MOST).map((one, index) => ({ ...one, number: index + 1 }));
        this.view.text.node.style.setProperty("--sl-lanes", String(this.shown.length));
        this.node.replaceChildren(
            ...this.shown.map((lane) => this.chip(lane, verdictWords(lane) || plural(lane.spans.length, "span"), "takeLane")),
            ...this.turners(),
            this.view.button(`Majority of ${this.counted(this.voters())}`, "takeMajority"), this.view.button("Union", "takeUnion"),
            this.view.button("No spans", "takeNone"), this.namer());
    }

    /** The way to decide without knowing whose lane is whose, and back. */
    namer() {
        const { editor } = this.view;
        const node = h("button", {
            class: "sl-button", type: "button", "aria-pressed": String(editor.names.areHidden),
            title: "Annotators are A, B, C… instead, on each item in another order",
        }, "Hide names");
        return pressable(node, () => {
            editor.names.toggle();
            this.view.open(this.item);
            this.view.focusChanged({ scroll: false });
            if (this.view.trace.isOpen) this.view.trace.paint();
        });
    }

    /** Where there are more annotators than lanes: which are shown, and the way to the others. */
    turners() {
        const all = this.raters.length;
        if (all <= MOST) return [];
        const said = h("span", { class: "sl-quiet" }, `${this.first + 1} to ${this.first + this.shown.length} of ${all} annotators`);
        return [this.view.button("Previous", "previousLanes"), said, this.view.button("Next", "nextLanes"), this.view.button("Find", "findLane")];
    }

    /** Show the lanes of the next nine annotators, or of those before; after the last come the first. */
    turn(by) {
        const pages = Math.ceil(this.raters.length / MOST);
        if (pages < 2) return this.view.say("All annotators have a lane.", true);
        return this.begin(((this.first / MOST + by + pages) % pages) * MOST);
    }

    /** Ask for an annotator by name, and show the lane with those around it. */
    find() {
        const has = ({ spans, claims }) => plural(spans.length, "span") + (claims.length ? `, ${plural(claims.length, "claim")}` : "");
        const all = this.raters.map((one) => ({ ...one, name: one.shown }));
        const draw = (one) => [h("b", {}, one.name), h("span", { class: "sl-quiet" }, has(one))];
        const choose = (name) => {
            const at = this.raters.findIndex((one) => one.shown === name);
            this.begin(at - (at % MOST));
        };
        return this.view.chooser.open({ noun: "annotator", all, draw, choose });
    }

    begin(first) {
        this.first = first;
        this.build(this.item);
        this.view.marksChanged();
        const names = this.shown.map(({ shown, number }) => `${number} ${shown}`);
        return this.view.say(`Annotators ${this.first + 1} to ${this.first + this.shown.length}: ${names.join(", ")}.`);
    }

    /** People, or where none of `raters` is one, detectors: whose majority and union it is. */
    voters(raters = this.raters) {
        const people = raters.filter((one) => one.kind === "person");
        return people.length > 0 ? people : raters;
    }

    counted(voters) {
        if (voters[0]?.kind === "person") return voters.length === 1 ? "1 person" : `${voters.length} people`;
        return plural(voters.length, "detector");
    }

    /** A button that takes what is in a lane. */
    chip(lane, has, command) {
        const node = h("button", {
            class: "sl-chip sl-lane", type: "button", "data-lane": String(lane.number), "data-kind": lane.kind,
            style: `--sl-lane: var(--sl-lane-${lane.number})`,
            title: `Take what ${lane.shown} has (${lane.number})`,
        }, h("kbd", { "aria-hidden": "true" }, String(lane.number)), " ", h("b", {}, lane.shown),
        ` ${lane.kind === "person" ? "" : `${kindOf(lane)} · `}${has}`);
        if (lane.note) node.append(" ", h("i", { dir: "auto", title: lane.note }, lane.note));
        return pressable(node, () => this.view.editor.run(command, null, String(lane.number)));
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
                    id: `lane:${lane.number}:${lane.kind}:${key}`, kind: "lane", number: lane.number, by: lane.kind,
                    start, end, prob: 0, label: null,
                };
                found.push({ mark, lane: depth - lane.number, depth });
            }
        }
        return found.sort((one, two) => byPlace(one.mark, two.mark));
    }

    // -- what is taken

    /** The annotator of a lane, or null, said aloud. */
    at(number) {
        return this.shown[number - 1] ?? (this.view.say(`There is no lane ${number}.`, true) && null);
    }

    take(number) {
        const lane = this.at(number);
        if (lane?.verdict) return this.callHallucinated(lane.shown);
        return !lane || this.replace(lane.spans.map((span) => soleSource(lane.name, span)), `Taken from ${lane.shown}`);
    }

    takeMajority() {
        const voters = this.voters();
        const marks = agreed(this.view.editor.item.text, voters, majorityOf(voters), "majority");
        const calling = voters.filter(({ verdict, spans }) => verdict || spans.length > 0);
        if (marks.length === 0 && calling.length >= majorityOf(voters)) return this.callHallucinated(`${calling.length} of ${voters.length}`);
        return this.replace(marks, `Taken by the majority of ${this.counted(voters)}`);
    }

    takeUnion() {
        const voters = this.voters();
        return this.replace(agreed(this.view.editor.item.text, voters, 1, "union"), `Taken from any of ${this.counted(voters)}`);
    }

    /** Nothing to take over: who is meant calls the answer hallucinated, without a place that is agreed on. */
    callHallucinated(who) {
        return this.view.say(`${who} call this answer hallucinated, without a common place: h finishes it so.`, true);
    }

    replace(marks, said) {
        const { editor } = this.view;
        if (!editor.apply({ kind: "replace", spans: marks.map(newId), marks })) return true;
        editor.focus = [...editor.marks.values()].find((mark) => mark.kind === "own")?.id ?? editor.firstMark();
        this.view.focusChanged({ scroll: false });
        return this.view.say(`${said}: ${plural(marks.length, "span")}.`, true);
    }
}

/** How many of them more than half are. */
export function majorityOf(voters) {
    return Math.floor(voters.length / 2) + 1;
}
