/** What is known of the chosen claim, and what can be done to it. */

import { tellerOf } from "./claims.js";
import { h } from "./dom.js";
import { Trail } from "./trail.js";
import { VERDICTS, probNode, verdictNode } from "./verdicts.js";
import { shorten } from "./words.js";

/** The chosen claim with the verdicts on it, and the way to its sources. */
export class ClaimCard {
    constructor(panel) {
        this.panel = panel;
        this.trail = new Trail(panel);
        this.about = h("div", { class: "sl-claim-about" });
        this.node = h("div", { class: "sl-claim-card", role: "group", "aria-label": "Chosen claim" }, this.about, this.trail.node);
    }

    paint(row) {
        this.trail.paint(row && tellerOf(row, this.panel.editor.item.payload.annotators));
        if (!row) {
            this.about.replaceChildren(h("p", { class: "sl-quiet" }, this.panel.rows.length ? "Choose a claim: l goes to the list." : ""));
            return;
        }
        this.about.replaceChildren(
            h("p", { class: "sl-claim-whole", dir: "auto", lang: this.panel.editor.item.payload.lang }, shorten(row.text, 2000)),
            this.verdictRow(row),
            h("div", { class: "sl-claim-tools" }, ...this.tools(row)),
            row.own?.note ? h("p", { class: "sl-note", dir: "auto" }, row.own.note) : "",
            h("ul", { class: "sl-steps" }, ...this.panel.editor.names.orderedMembers(row.members).map((member) => memberNode(member, this.panel.editor.names))));
    }

    verdictRow(row) {
        const node = h("div", { class: "sl-labels", role: "group", "aria-label": "Your verdict" });
        Object.entries(VERDICTS).forEach(([verdict, [sign, words]], index) => {
            const chosen = row.own?.verdict === verdict;
            const button = this.button(`${sign} ${words}`, "judgeClaim", String(index + 1), chosen ? "sl-chosen" : "");
            button.setAttribute("aria-pressed", String(chosen));
            node.append(button);
        });
        return node;
    }

    tools(row) {
        const { view } = this.panel;
        const comment = row.own ? [this.button("Comment", "commentClaim")] : [];
        if (row.kind === "own" && !row.own.suggested_by) {
            return [this.button("Reword", "rewordClaim"), ...comment, this.button("Remove", "removeClaim")];
        }
        const decide = [row.kind === "own" ? "" : this.button("Accept", "acceptClaim"), row.kind === "rejected" ? "" : this.button("Reject", "rejectClaim")];
        const evidence = view.claims.evidence()?.length ? [view.button("Evidence", "nextEvidence")] : [];
        return [...decide, ...comment, ...evidence];
    }

    /** A button that leaves the focus in here. */
    button(name, command, key = null, className = "") {
        const node = this.panel.view.button(name, command, className, key);
        if (key) node.title = `Verdict: ${name.slice(2)} (${key})`;
        return node;
    }
}

/** What an annotator says of the claim, why, and where an error came in. */
function memberNode({ annotator, verdict, prob, note, error_stages: stages }, names) {
    return h("li", { dir: "auto" }, h("b", {}, names.of(annotator)), " ", verdictNode(verdict), probNode(prob),
        stages.length ? h("span", { class: "sl-error-stage" }, `error in: ${stages.join(", ")}`) : "",
        note ? h("p", { class: "sl-reason", dir: "auto" }, note) : "");
}
