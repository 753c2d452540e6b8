/** Verdicts on claims as they are shown. */

import { h, meter } from "./dom.js";
import { percent } from "./words.js";

/** A sign and words by verdict, in the order of the keys 1 to 6. */
export const VERDICTS = {
    supported: ["✓", "supported"],
    refuted: ["✕", "refuted"],
    "not-enough-evidence": ["?", "not enough evidence"],
    conflicting: ["≠", "conflicting"],
    "not-supported": ["✕", "not supported"],
    inconclusive: ["~", "inconclusive"],
};
export const WRONG = new Set(["refuted", "not-supported"]);

/** A chip with a verdict, or that there is none. */
export function verdictNode(verdict) {
    const [sign, words] = VERDICTS[verdict] ?? ["–", "no verdict"];
    return h("span", { class: `sl-fact-${verdict ?? "inconclusive"}`, dir: "ltr" }, h("span", { class: "sl-verdict" }, `${sign} ${words}`));
}

export function probNode(prob) {
    return prob === null || prob === undefined ? "" : h("span", { class: "sl-prob", dir: "ltr" }, meter(prob), percent(prob));
}
