/** How the steps of a trace look; steps of one kind that follow each other come together. */

import { h } from "./dom.js";
import { sourceOf } from "./passage.js";
import { missingNode, readNode, section, stage, stageNode } from "./trace_parts.js";
import { VERDICTS, WRONG, probNode, verdictNode } from "./verdicts.js";
import { plural } from "./words.js";

const FEW_RELATIONS = 12;

/** A builder of nodes for each kind of step; mount.js adds those that systems bring. */
export const SECTIONS = {
    query: (panel, steps, context) => section("Asked", ...steps.map((step) => queryNode(panel, step, context))),
    quote: (panel, steps) => {
        const lost = steps.filter((step) => (step.places ?? []).length === 0).length;
        const title = `${plural(steps.length, "quote")} of the answer${lost ? `, ${lost} not found in it` : ""}`;
        return section(title, h("ul", { class: "sl-steps" }, ...steps.map((step) => quoteNode(panel, step))));
    },
    fact: (panel, steps) => {
        const wrong = steps.filter((step) => WRONG.has(step.verdict)).length;
        const words = VERDICTS[steps.find((step) => WRONG.has(step.verdict))?.verdict ?? "refuted"][1];
        return section(`${plural(steps.length, "fact")} of the answer, ${wrong} ${words}`,
            h("ul", { class: "sl-steps" }, ...steps.map((step) => factNode(panel, step))));
    },
    pair: (panel, steps, context) => section("Questions and answers",
        h("ol", { class: "sl-steps" }, ...steps.map((step) => pairNode(panel, step, context))), verdictsNode(steps, context.about)),
    recall: (panel, steps, context) => section("Recalled from memory", ...steps.map((step) => recallNode(panel, step, context))),
    relation: (panel, steps) => relationsNode(steps),
    remark: (panel, steps) => section("Remarks", ...steps.map((step) => h("p", { dir: "auto" }, step.text, stageNode(step)))),
    calls: (panel, steps) => section("Calls", callsTable(steps)),
};

function queryNode(panel, step, { about, item }) {
    const passages = step.passages ?? [];
    const found = passages.length ? plural(passages.length, "passage") : "no passages";
    return h("div", { class: "sl-query" },
        h("p", { class: "sl-asked", dir: "auto" }, step.text || "the question"),
        h("p", { class: "sl-quiet" }, [step.retriever, found, ...stage(step)].join(" · ")),
        h("ul", { class: "sl-steps" }, ...passages.map((index) => h("li", { dir: "auto" }, readNode(panel, index, about, item)))));
}

/** A question about a claim: the document, what of it was read, the answer, and what that settled. */
function pairNode(panel, step, { about, item }) {
    const passages = step.passages ?? [];
    const results = `from ${plural(passages.length, "search result")}`;
    const read = (index) => readNode(panel, index, about, item);
    const found = step.window ? windowNode(panel, step, item)
        : passages.length === 0 ? h("p", { class: "sl-quiet" }, results)
            : h("details", {}, h("summary", {}, results), h("ul", { class: "sl-steps" }, ...passages.map((index) => h("li", {}, read(index)))));
    return h("li", { class: "sl-pair", dir: "auto" },
        h("p", { class: "sl-asked", dir: "auto" }, step.question), found,
        h("p", { class: "sl-answered", dir: "auto" }, step.answer),
        step.settled ? h("p", {}, "Early verdict: ", verdictNode(step.settled)) : "",
        h("p", { class: "sl-quiet", dir: "auto" }, [step.searched && `searched for: ${step.searched}`, ...stage(step)].filter(Boolean).join(" · ")),
        step.remark ? h("p", { class: "sl-quiet", dir: "auto" }, step.remark) : "");
}

/** The one document that an answer was given from: title, site and date, and the part that was read. */
function windowNode(panel, { window, sentence }, item) {
    const passage = item.payload.passages[window.passage];
    if (!passage) return missingNode(window.passage);
    const text = panel.view.evidence.texts[window.passage];
    const cut = (from, to) => text.slice(text.unit(from), text.unit(to));
    const { name, source } = sourceOf(passage, window.passage);
    const { start, end } = sentence ?? { start: window.end, end: window.end };
    const act = () => panel.view.evidence.showPassage(window.passage, [{ ...(sentence ?? window), stance: "closest" }]);
    return panel.leading("sl-read", "Show the passage", act, h("b", {}, name), source ? h("small", {}, ` ${source}`) : "",
        h("span", { class: "sl-sentence" }, cut(window.start, start), start < end ? h("mark", { class: "sl-quote sl-closest" }, cut(start, end)) : "",
            cut(end, window.end)));
}

/** The verdict that the questions ended with, beside the early one. */
function verdictsNode(steps, about) {
    const { claim } = steps.at(-1);
    const early = steps.find((step) => step.settled)?.settled;
    const late = about.steps.find((step) => step.kind === "fact" && step.claim === claim)?.verdict;
    if (!late) return "";
    const than = early && early !== late ? ", which overturns the early one" : "";
    return h("p", {}, "Verdict: ", verdictNode(late), than);
}

/** What the memory held about a claim: each passage with its age and what had found it. */
function recallNode(panel, step, { about, item }) {
    const passages = step.passages ?? [];
    return h("div", { class: "sl-query" },
        h("p", { class: "sl-quiet", dir: "auto" }, [step.entities.join(", "), ...stage(step)].join(" · ")),
        passages.length ? "" : h("p", {}, "Nothing was known yet."),
        h("ul", { class: "sl-steps" }, ...passages.map((index, at) => h("li", { dir: "auto" },
            readNode(panel, index, about, item), h("p", { class: "sl-quiet", dir: "auto" }, (step.notes ?? [])[at] ?? "")))));
}

function quoteNode(panel, step) {
    const lost = (step.places ?? []).length === 0;
    return h("li", { dir: "auto" }, panel.placed(step), probNode(step.prob),
        lost ? h("em", { class: "sl-lost-word", dir: "ltr" }, "not found in the answer") : "",
        stageNode(step),
        step.reason ? h("p", { class: "sl-reason", dir: "auto" }, step.reason) : "");
}

function factNode(panel, step) {
    const [sign, words] = VERDICTS[step.verdict];
    const looked = step.looked_up ?? [];
    const inAnswer = (step.places ?? []).length > 0;
    return h("li", { class: `sl-fact sl-fact-${step.verdict}`, dir: "auto" },
        h("span", { class: "sl-verdict", dir: "ltr" }, `${sign} ${words}`), probNode(step.prob),
        inAnswer ? panel.placed(step) : h("span", { class: "sl-told" }, step.text),
        stageNode(step),
        step.reason ? h("p", { class: "sl-reason", dir: "auto" }, step.reason) : "",
        looked.length ? h("p", { class: "sl-quiet", dir: "auto" }, `Looked up: ${looked.join(" · ")}`) : "");
}

function relationsNode(steps) {
    const rows = steps.map((step) => h("tr", {}, ...["subject", "relation", "object"].map((part) => h("td", { dir: "auto" }, step[part]))));
    const head = h("tr", {}, ...["Subject", "Relation", "Object"].map((name) => h("th", { scope: "col" }, name)));
    const details = h("details", steps.length > FEW_RELATIONS ? {} : { open: "" },
        h("summary", {}, `${plural(steps.length, "relation")} read from the passages`),
        h("table", { class: "sl-table" }, h("thead", {}, head), h("tbody", {}, ...rows)));
    return h("section", { class: "sl-step" }, details);
}

function callsTable(steps) {
    const number = (value) => value.toLocaleString("en");
    const row = (step) => {
        const cached = step.cached_tokens ? ` (${number(step.cached_tokens)} cached by the provider)` : "";
        const again = step.from_cache ? ` (${number(step.from_cache)} from the cache)` : "";
        const asked = Object.entries(step.options ?? {}).map(([name, value]) => `${name.replaceAll("_", " ")} ${value}`);
        return [["Model", step.model], ...(asked.length ? [["Asked with", asked.join(", ")]] : []), ["Calls", `${number(step.calls)}${again}`],
            ["Tokens in", `${number(step.input_tokens ?? 0)}${cached}`], ["Tokens out", number(step.output_tokens ?? 0)],
            ["Cost", step.cost === null || step.cost === undefined ? "price unknown" : money(step.cost)]];
    };
    return h("div", {}, ...steps.map((step) => h("dl", { class: "sl-calls" },
        ...row(step).flatMap(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]))));
}

function money(cost) {
    if (cost === 0) return "$0";
    return cost < 0.01 ? `$${cost.toPrecision(2)}` : `$${cost.toFixed(2)}`;
}

/** Steps of a kind that nobody here knows: what they say, as it came. */
export function otherSection(kind, steps) {
    const words = (value) => typeof value === "string" ? value : JSON.stringify(value);
    return section(kind, ...steps.map((step) => h("dl", { class: "sl-calls" },
        ...Object.entries(step).filter(([name]) => name !== "kind").flatMap(([name, value]) =>
            [h("dt", { dir: "auto" }, name), h("dd", { dir: "auto" }, words(value))]))));
}
