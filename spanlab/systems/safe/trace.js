/** The steps of a reasoning as cards: what each does, what is wrong with it, and what was tried before. */

import { h } from "./dom.js";
import { readNode, section } from "./trace_parts.js";

export const SECTIONS = {
    reasoning: (panel, steps, { about, item }) => section(reasoningTitle(steps),
        reasoningCards(panel, steps, (index) => readNode(panel, index, about, item))),
};

/** Steps with what a verifier said of them; refused attempts are folded beside the one that stands. */
function reasoningCards(panel, steps, readNode) {
    const cards = [];
    let refused = [];
    for (const step of steps) {
        if (step.stands === false) refused.push(step);
        else {
            cards.push(card(panel, step, readNode, refused));
            refused = [];
        }
    }
    // A search or a failure came between an attempt and what followed.
    if (refused.length) cards.push(...refused.map((step) => card(panel, step, readNode, [])));
    return h("ol", { class: "sl-steps sl-reasoning" }, ...cards);
}

function reasoningTitle(steps) {
    const wrong = steps.filter((step) => step.error && step.stands !== false).length;
    const count = new Set(steps.map((step) => step.number)).size;
    return `${count} step${count === 1 ? "" : "s"} of the reasoning, ${wrong} wrong`;
}

function card(panel, step, readNode, refused) {
    const isInAnswer = (step.places ?? []).length > 0;
    const tried = refused.length ? h("details", {},
        h("summary", {}, `${refused.length} refused attempt${refused.length === 1 ? "" : "s"}`),
        h("ul", { class: "sl-steps" }, ...refused.map((each) => card(panel, each, readNode, [])))) : "";
    return h("li", { class: `sl-step-card${step.family ? ` sl-family-${step.family.toLowerCase().replaceAll(" ", "-")}` : ""}`, dir: "auto" },
        h("p", { class: "sl-step-head", dir: "ltr" }, h("b", {}, `Step ${step.number}`), " ",
            chip("sl-does", step.does), step.error ? chip("sl-error", step.error, step.family) : "",
            step.stands === false ? h("small", { class: "sl-quiet" }, " refused") : ""),
        isInAnswer ? panel.placed(step) : h("span", { class: "sl-told" }, step.text),
        step.diagnosis ? h("p", { class: "sl-reason", dir: "auto" }, step.diagnosis) : "",
        step.guidance ? h("p", { class: "sl-quiet", dir: "auto" }, `Next: ${step.guidance}`) : "",
        h("div", {}, ...(step.passages ?? []).map(readNode)), tried);
}

/** A chip with the first letter of its group set off, so that it does not speak by colour alone. */
function chip(name, words, group = words) {
    return h("span", { class: `sl-verdict ${name}` }, h("b", { "aria-hidden": "true" }, group[0]), ` ${words}`);
}
