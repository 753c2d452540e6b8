/** Where everything stands in the picture of a trail, in pixels. */

const COLUMN = 215;
const NARROW = 110;
const GAP = 44;
const EDGE = 16;
const LINE = 16;
const PADDING = 10;
const MOST_QUOTES = 3;
const QUOTE_LINES = 5;
const FONT = "12px sans-serif";

/** Stages as columns, nodes as boxes with their lines, links as curves, rounds as lines below. */
export function layoutOf(trail, claim, lang) {
    const wrap = wrapper(lang);
    const top = EDGE + 4 * LINE;
    let x = EDGE;
    const columns = trail.stages.map((stage) => {
        const nodes = trail.nodes.filter((node) => node.stage === stage.name);
        const width = nodes.length > 0 ? COLUMN : NARROW;
        const column = { ...stage, x, width, shown: nodes.length, boxes: boxesOf(nodes, { x, top, width, wrap, claim }) };
        x += width + GAP;
        return column;
    });
    const boxes = new Map(columns.flatMap((column) => column.boxes).map((box) => [box.id, box]));
    const links = [...boxes.values()].flatMap((box) => box.sources.filter((id) => boxes.has(id)).map((id) => [boxes.get(id), box]));
    const bottom = Math.max(top, ...[...boxes.values()].map((box) => box.y + box.height)) + LINE;
    return { columns, boxes, links, top, bottom, width: x - GAP + EDGE, height: bottom + (trail.rounds.length + 1) * LINE + EDGE, LINE, PADDING };
}

function boxesOf(nodes, { x, top, width, wrap, claim }) {
    let y = top;
    return nodes.map((node) => {
        const lines = linesOf(node, claim, (text, most) => wrap(text, width - 2 * PADDING, most));
        const box = { ...node, x, y, width, lines, height: 2 * PADDING + (lines.length + 1) * LINE };
        y += box.height + LINE;
        return box;
    });
}

/** The lines of a node: sentences that were quoted of it, else how it begins; of the answer, the claim. */
function linesOf(node, claim, wrap) {
    if (node.id === claim.node) return wrap(claim.text, 2 * QUOTE_LINES).map((text) => ({ text, kind: "claim" }));
    if (node.quotes.length === 0) return wrap(node.beginning, 2).map((text) => ({ text, kind: "quiet" }));
    const lines = node.quotes.slice(0, MOST_QUOTES)
        .flatMap((quote) => wrap(`“${quote.text.trim()}”`, QUOTE_LINES).map((text) => ({ text, kind: "quote" })));
    const more = node.quotes.length - MOST_QUOTES;
    return more > 0 ? [...lines, { text: `and ${more} more`, kind: "quiet" }] : lines;
}

/** A function that cuts a text into lines of a width, at most so many. */
function wrapper(lang) {
    const context = document.createElement("canvas").getContext("2d");
    context.font = FONT;
    const words = new Intl.Segmenter(Intl.Segmenter.supportedLocalesOf([lang]), { granularity: "word" });
    return (text, width, most) => {
        const lines = [""];
        for (const { segment } of words.segment(text.slice(0, 4000).replace(/\s+/g, " "))) {
            const longer = lines.at(-1) + segment;
            if (lines.at(-1) === "" || context.measureText(longer.trimEnd()).width <= width) lines[lines.length - 1] = longer;
            else if (lines.length === most) {
                lines[most - 1] = `${lines[most - 1].slice(0, -2).trimEnd()} …`;
                break;
            } else lines.push(segment.trimStart());
        }
        return lines.map((line) => cut(line.trimEnd(), width, context));
    };
}

/** A word that is wider than its box ends in an ellipsis. */
function cut(line, width, context) {
    if (context.measureText(line).width <= width) return line;
    let short = [...line];
    while (short.length > 1 && context.measureText(`${short.join("")}…`).width > width) short = short.slice(0, -1);
    return `${short.join("")}…`;
}
