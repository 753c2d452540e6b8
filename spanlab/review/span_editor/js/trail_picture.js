/** The picture of a trail as SVG: stages as columns, quoted sentences in their nodes. */

import { layoutOf } from "./trail_layout.js";
import { VERDICTS } from "./verdicts.js";
import { plural, shorten } from "./words.js";

const SVG = "http://www.w3.org/2000/svg";
const STYLE = `
text { font: 12px sans-serif; fill: var(--ink); }
.title { font-weight: 700; }
.quiet { fill: var(--quiet); }
.box { fill: var(--paper); stroke: var(--line); stroke-width: 1.5; }
.quoted .box { stroke: var(--ink); }
.error .box { stroke: var(--wrong); stroke-width: 3; stroke-dasharray: 7 3; }
.error-word { fill: var(--wrong); font-weight: 700; }
.link { fill: none; stroke: var(--quiet); stroke-width: 1.5; }
.ground { fill: var(--paper); }
g:focus { outline: none; }
g:focus .box, .chosen .box { stroke: var(--chosen); stroke-width: 4; }
`;
export const LIGHT = { ink: "#222", paper: "#fff", quiet: "#5b6470", line: "#b9c0c9", wrong: "#b35400", chosen: "#0065a8" };
export const DARK = { ink: "#f0f2f5", paper: "var(--sl-paper)", quiet: "#b4bcc8", line: "#5b6470", wrong: "#f0a13c", chosen: "#5cb8f5" };

/** Draw the trail of a claim; `data-node` names each node's group. */
export function drawTrail(trail, claim, lang) {
    const layout = layoutOf(trail, claim, lang);
    const svg = s("svg", { width: layout.width, height: layout.height, viewBox: `0 0 ${layout.width} ${layout.height}`, class: "sl-picture" });
    const style = s("style", {});
    style.textContent = STYLE;
    svg.append(style, s("rect", { class: "ground", width: layout.width, height: layout.height }),
        ...layout.columns.map((column) => header(column, claim)),
        ...layout.links.map(([from, to]) => link(from, to)),
        ...layout.columns.flatMap((column) => column.boxes.map((box) => node(box, column, trail))),
        ...trail.rounds.map((round, index) => roundLine(round, index, layout)));
    return svg;
}

/** Give a picture its colours. */
export function coloured(svg, colours) {
    for (const [name, colour] of Object.entries(colours)) svg.style.setProperty(`--${name}`, colour);
    return svg;
}

/** What a round did, in a line. */
export function roundWords({ read, verdict }, index) {
    const [sign, words] = VERDICTS[verdict];
    return `Round ${index + 1}: ${plural(read, "text")} read, ${sign} ${words}`;
}

function header({ x, name, nodes, shown, read, error, boxes }, claim) {
    const rest = nodes - shown;
    const [sign, verdict] = VERDICTS[claim.verdict] ?? ["", "no verdict"];
    const counts = boxes.some(({ id }) => id === claim.node)
        ? [`the claim: ${sign} ${verdict}`]
        : [`${read.toLocaleString("en")} of ${nodes.toLocaleString("en")} read`, rest > 0 ? `${rest.toLocaleString("en")} not on the path` : ""];
    return s("g", {}, text(x, 20, shorten(name, shown ? 32 : 15), "title"),
        ...counts.filter(Boolean).map((words, index) => text(x, 36 + index * 14, words, "quiet")),
        error ? text(x, 66, "⚠ Error introduced here", "error-word") : "");
}

function node(box, { error }, trail) {
    const { x, y, width, height, id } = box;
    const label = `${id}, stage ${box.stage}${error ? ", error introduced here" : ""}. ${box.lines.map((line) => line.text).join(" ")}`;
    const rounds = [...new Set(box.quotes.map((quote) => quote.round))];
    const signs = rounds.map((round) => `round ${round} ${VERDICTS[trail.rounds[round - 1].verdict][0]}`).join(" · ");
    return s("g", { class: `${box.quotes.length ? "quoted" : ""} ${error ? "error" : ""}`, "data-node": id, tabindex: -1, role: "button", "aria-label": label },
        s("rect", { class: "box", x, y, width, height, rx: 6 }),
        text(x + 10, y + 20, shorten(id, signs ? 18 : 30), "title"),
        signs ? text(x + width - 10, y + 20, signs, "quiet", "end") : "",
        ...box.lines.map((line, index) => lineOf(line, index, box)));
}

function lineOf({ text: words, kind }, index, { x, y, width }) {
    const first = /\p{L}/u.exec(words)?.[0] ?? "";
    const rightToLeft = /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufeff]/.test(first);
    const written = text(rightToLeft ? x + width - 10 : x + 10, y + 38 + index * 16, words, kind === "quiet" ? "quiet" : "");
    if (rightToLeft) written.setAttribute("direction", "rtl");
    return written;
}

function link(from, to) {
    const [x1, y1, x2, y2] = [from.x + from.width, from.y + 20, to.x, to.y + 20];
    const bend = Math.max(24, (x2 - x1) / 2);
    return s("path", { class: "link", d: `M ${x1} ${y1} C ${x1 + bend} ${y1}, ${x2 - bend} ${y2}, ${x2} ${y2}` });
}

function roundLine(round, index, { bottom, LINE }) {
    return text(16, bottom + (index + 1) * LINE, roundWords(round, index), "");
}

function text(x, y, words, className, anchor = "start") {
    const node = s("text", { x, y, class: className, "text-anchor": anchor });
    node.textContent = words;
    return node;
}

function s(tag, attributes, ...children) {
    const node = document.createElementNS(SVG, tag);
    for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, String(value));
    node.append(...children.filter((child) => child !== ""));
    return node;
}
