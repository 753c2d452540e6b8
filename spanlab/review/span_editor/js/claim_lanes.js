/** Adjudication of claims: which verdicts the annotators give, and what can be taken from them. */

import { markOf } from "./claims.js";
import { h } from "./dom.js";
import { newId } from "./ids.js";
import { distinct } from "./joining.js";
import { majorityOf } from "./lanes.js";
import { verdictNode } from "./verdicts.js";
import { plural } from "./words.js";

/** The lanes of the open item as far as claims go, above the list of them. */
export class ClaimLanes {
    constructor(panel) {
        this.panel = panel;
        this.node = h("div", { class: "sl-lanes", role: "group", "aria-label": "Annotators' claims", hidden: "" });
    }

    get lanes() {
        return this.panel.view.lanes;
    }

    paint() {
        const { lanes, panel: { view } } = this;
        this.node.hidden = !lanes.isOn || this.panel.rows.length === 0;
        if (this.node.hidden) return;
        const having = lanes.shown.filter(({ claims }) => claims.length > 0);
        this.node.replaceChildren(
            ...having.map((lane) => lanes.chip(lane, plural(lane.claims.length, "claim"), "takeClaimsOf")),
            ...lanes.turners(),
            view.button(`Majority of ${lanes.counted(this.voters())}`, "takeMajorityOfClaims"), view.button("Union", "takeUnionOfClaims"),
            view.button("No claims", "takeNoClaims"));
    }

    /** Whose majority and union it is: those who have claims. */
    voters() {
        return this.lanes.voters(this.lanes.raters.filter(({ claims }) => claims.length > 0));
    }

    /** The verdicts on a claim, each with those who give it, by lane or else by number. */
    said(row) {
        const numbers = new Map(this.lanes.shown.map(({ name, number }) => [name, number]));
        const raters = new Set(this.lanes.raters.map(({ name }) => name));
        return [...byVerdict(row.members.filter(({ annotator }) => raters.has(annotator)))].map(([verdict, members]) => {
            const names = members.map(({ annotator }) => annotator);
            const seen = names.map((name) => numbers.get(name)).filter(Boolean).sort((one, two) => one - two);
            const more = names.length - seen.length;
            const by = [seen.join("·"), more ? `+${more}` : ""].filter(Boolean).join(" ");
            return h("span", { class: "sl-claim-said", title: names.map((name) => this.panel.editor.names.of(name)).sort().join(", ") }, h("kbd", { "aria-hidden": "true" }, by), verdictNode(verdict));
        });
    }

    // -- what is taken

    take(number) {
        const lane = this.lanes.at(number);
        return !lane || this.replace(lane.claims.map((claim) => markOf({ ...claim, suggested_by: lane.name, voters: [] })), `Taken from ${lane.shown}`);
    }

    /** Take claims with the verdict that at least so many give. */
    takeMajority() {
        const voters = this.voters();
        return this.replace(this.agreed(voters, majorityOf(voters), "majority"), `Taken by the majority of ${this.lanes.counted(voters)}`);
    }

    /** Take every claim, with the verdict that most give; none if two are given as often. */
    takeUnion() {
        const voters = this.voters();
        return this.replace(this.agreed(voters, 1, "union"), `Taken from any of ${this.lanes.counted(voters)}`);
    }

    agreed(voters, least, source) {
        const names = new Set(voters.map(({ name }) => name));
        return this.panel.rows.flatMap((row) => {
            const members = row.members.filter(({ annotator }) => names.has(annotator));
            if (members.length < least) return [];
            const [top, second] = [...byVerdict(members)].sort(([, one], [, two]) => two.length - one.length);
            if (top[1].length >= least && top[1].length !== second?.[1].length) return [markOfAll(...top, source)];
            return least === 1 ? [markOfAll(null, members, source)] : [];
        });
    }

    replace(marks, said) {
        const { editor, view } = this.panel;
        if (!editor.apply({ kind: "replace-claims", claims: marks.map(newId), marks })) return true;
        view.flush();
        this.panel.toNextOpen();
        const none = marks.filter(({ verdict }) => !verdict).length;
        return view.say(`${said}: ${plural(marks.length, "claim")}${none ? `, ${none} without a verdict` : ""}.`, true);
    }
}

function byVerdict(members) {
    const found = new Map();
    for (const member of members) found.set(member.verdict, [...(found.get(member.verdict) ?? []), member]);
    return found;
}

/** One claim of several annotators: with a verdict, what speaks for it comes from those who give it. */
function markOfAll(verdict, members, source) {
    const speaking = verdict ? members : [];
    return markOf({
        ...members[0], suggested_by: source, verdict, prob: null, voters: members.map(({ annotator }) => annotator),
        evidence: distinct(speaking.flatMap(({ evidence }) => evidence)),
        error_stages: [...new Set(speaking.flatMap(({ error_stages: stages }) => stages))],
    });
}
