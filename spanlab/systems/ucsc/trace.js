/** The answer as a model corrected it. */

import { h } from "./dom.js";
import { Text } from "./text.js";
import { section } from "./trace_parts.js";
import { plural } from "./words.js";

const LONG_SAME = 600;
const KEPT_SAME = 160;

export const SECTIONS = {
    revision: (panel, steps, { item }) => h("div", {}, ...steps.map((step) => revisionNode(step, item))),
};

/** The answer as a model corrected it: what it took out struck through, what it put in underlined. */
function revisionNode(step, item) {
    const changes = countChanges(step.diff);
    const title = changes ? `Revision: ${plural(changes, "change")}` : "Revision: nothing changed";
    const diff = h("div", { class: "sl-diff" });
    for (const [kind, from, to] of step.diff) {
        if (kind === "inserted") diff.append(h("ins", {}, from));
        else {
            const text = item.text.slice(item.text.unit(from), item.text.unit(to));
            diff.append(...(kind === "deleted" ? [h("del", {}, text)] : sameNodes(text, item.payload.lang)));
        }
    }
    return section(title, diff);
}

function countChanges(diff) {
    return diff.filter(([kind], index) => kind !== "same" && (index === 0 || diff[index - 1][0] === "same")).length;
}

/** Text that a revision kept; the middle of a long stretch waits behind a button. */
function sameNodes(text, lang) {
    if (text.length <= LONG_SAME) return [document.createTextNode(text)];
    const whole = new Text(text, lang);
    const [start, end] = [whole.snapGrapheme(KEPT_SAME, true), whole.snapGrapheme(text.length - KEPT_SAME, false)];
    const more = h("button", { class: "sl-more", type: "button", title: "Show the unchanged text" },
        `… ${(end - start).toLocaleString("en")} characters unchanged …`);
    more.addEventListener("click", () => more.replaceWith(document.createTextNode(text.slice(start, end))));
    return [document.createTextNode(text.slice(0, start)), more, document.createTextNode(text.slice(end))];
}
