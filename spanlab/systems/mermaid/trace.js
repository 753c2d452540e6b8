/** Thoughts of an agent, and its calls. */

import { h } from "./dom.js";
import { readNode, section, stage } from "./trace_parts.js";
import { plural } from "./words.js";

export const SECTIONS = {
    thought: (panel, steps, context) => section("Thoughts and calls",
        h("ol", { class: "sl-steps" }, ...steps.map((step) => thoughtNode(panel, step, context)))),
};

/** A thought, the call that followed from it, and what that brought, folded. */
function thoughtNode(panel, step, { about, item }) {
    const passages = step.passages ?? [];
    const given = Object.entries(step.arguments ?? {}).map(([name, value]) =>
        `${name}: ${typeof value === "string" ? value : JSON.stringify(value)}`);
    const brought = step.failure ? "failed" : passages.length ? plural(passages.length, "passage") : "nothing found";
    const called = step.tool ? h("p", { class: "sl-asked", dir: "auto" }, [step.tool, given.join(", ")].filter(Boolean).join(" — ")) : "";
    const observed = step.tool ? h("details", {},
        h("summary", {}, `Observation: ${step.repeats ? `as in round ${step.repeats}, ` : ""}${brought}`),
        step.failure ? h("p", { dir: "auto" }, step.failure) : "",
        h("ul", { class: "sl-steps" }, ...passages.map((index) => h("li", { dir: "auto" }, readNode(panel, index, about, item))))) : "";
    const where = stage({ ...step, tool: undefined });
    return h("li", { class: "sl-thought", dir: "auto" },
        step.text ? h("p", { dir: "auto" }, step.text) : "", called, observed,
        where.length ? h("p", { class: "sl-quiet" }, where.join(" · ")) : "");
}
