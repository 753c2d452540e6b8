/** Rounds on the way from a claim to its sources. */

import { h } from "./dom.js";
import { section, stageNode } from "./trace_parts.js";
import { VERDICTS } from "./verdicts.js";
import { plural } from "./words.js";

export const SECTIONS = {
    trail: (panel, steps) => section("Followed to its sources", h("ol", { class: "sl-steps sl-trail" }, ...steps.map(roundNode))),
};

/** One round: how many texts were read, what was chosen of which of them, and the verdict. */
function roundNode(step) {
    const [sign, words] = VERDICTS[step.verdict];
    const quotes = step.quotes ?? [];
    const read = plural(step.checked.length, "text");
    return h("li", { class: `sl-fact sl-fact-${step.verdict}`, dir: "auto" },
        h("span", { class: "sl-verdict", dir: "ltr" }, `${sign} ${words}`), `${read} read`, stageNode(step),
        step.reason ? h("p", { class: "sl-reason", dir: "auto" }, step.reason) : "",
        h("ul", { class: "sl-steps" }, ...quotes.map((quote) => h("li", { dir: "auto" },
            h("b", {}, quote.node), " ", h("q", {}, quote.text)))),
        ...(step.summaries ?? []).map((text) => h("p", { class: "sl-quiet", dir: "auto" }, text)),
        step.judged?.length ? h("p", { class: "sl-quiet", dir: "auto" }, `judged by the whole text of ${step.judged.join(", ")}`) : "",
        step.remark ? h("p", { class: "sl-quiet", dir: "auto" }, step.remark) : "");
}
