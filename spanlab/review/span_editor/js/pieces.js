/** How marks are drawn over a paragraph: cut where they begin and end, in lanes and tints. */

const LANES = 4;

/** Marks by paragraph, each with the lane in which its underline runs. */
export function spread(marks, text) {
    const lanes = [];
    return byParagraph(marks.map((mark) => {
        let lane = lanes.findIndex((end) => end <= mark.start);
        if (lane < 0) lane = lanes.length;
        lanes[lane] = mark.end;
        return { mark, lane: lane % LANES };
    }), text);
}

/**
 * Entries by paragraph, in text order: a mark with its lane, counted from below, or null for a mark
 * without an underline; `depth` lanes are kept free under it, or as many as it needs.
 */
export function byParagraph(entries, text) {
    const found = new Map();
    for (const entry of entries) {
        const { mark } = entry;
        for (let index = text.paragraphIndex(mark.start); index < text.paragraphs.length; index += 1) {
            const paragraph = text.paragraphs[index];
            if (paragraph.start >= mark.end) break;
            if (paragraph.end <= mark.start) continue;
            const here = found.get(index);
            if (here) here.push(entry);
            else found.set(index, [entry]);
        }
    }
    return found;
}

/** Two underlines fit between lines of text; more need more room, or they run into the next line. */
export function lineHeight(here) {
    const deepest = here.reduce((most, { lane, depth }) => Math.max(most, depth ?? lane), 0);
    return deepest > 1 ? `calc(2em + ${(deepest - 1) * 5}px)` : "";
}

export function signatureOf(mark, lane, focus) {
    return `${mark.id} ${mark.kind} ${mark.start} ${mark.end} ${mark.prob} ${mark.label} ${lane} ${mark.id === focus}`;
}

/** Cut a paragraph wherever a mark begins or ends. */
export function piecesOf(paragraph, here) {
    if (paragraph.start === paragraph.end) return [];
    const cuts = new Set([paragraph.start, paragraph.end]);
    for (const { mark } of here) {
        cuts.add(Math.max(mark.start, paragraph.start));
        cuts.add(Math.min(mark.end, paragraph.end));
    }
    const sorted = [...cuts].sort((one, two) => one - two);
    const pieces = [];
    let from = 0;
    for (let index = 0; index + 1 < sorted.length; index += 1) {
        const [start, end] = [sorted[index], sorted[index + 1]];
        while (from < here.length && here[from].mark.end <= start) from += 1;
        const over = [];
        for (let at = from; at < here.length && here[at].mark.start < end; at += 1) {
            if (here[at].mark.end > start) over.push(here[at]);
        }
        pieces.push({ start, end, over });
    }
    return pieces;
}

export function segmentClasses({ start, end, over }, focus) {
    const classes = ["sl-seg"];
    const kinds = new Set(over.map(({ mark }) => mark.kind));
    if (kinds.has("rejected") && kinds.size === 1) classes.push("sl-struck");
    if (kinds.has("own")) classes.push("sl-own");
    const focused = over.find(({ mark }) => mark.id === focus)?.mark;
    if (focused) classes.push("sl-focus");
    if (focused?.start === start) classes.push("sl-first");
    if (focused?.end === end) classes.push("sl-last");
    return classes.join(" ");
}

/** Tint for how likely, one underline per mark: solid own, dashed suggested, dotted rejected. */
export function segmentStyle({ over }) {
    const lines = [];
    let doubt = 1;
    let deepest = 0;
    for (const { mark, lane, depth } of over) {
        if (lane === null) continue;
        deepest = Math.max(deepest, depth ?? lane);
        if (mark.kind === "lane") {
            lines.push(`${laneLine(mark)} 0 calc(100% - ${lane * 5}px) / 100% 3px no-repeat`);
            continue;
        }
        const thick = mark.kind === "own" ? 3 : mark.prob >= 0.67 ? 3 : mark.prob >= 0.34 ? 2 : 1;
        lines.push(`${LINES[mark.kind]} 0 calc(100% - ${lane * 5}px) / 100% ${thick}px no-repeat`);
        if (mark.kind !== "rejected") doubt *= 1 - (mark.kind === "own" ? 0.6 : mark.prob * 0.9);
    }
    const own = over.some(({ mark }) => mark.kind === "own");
    const tint = doubt === 1 ? 0 : Math.round(6 + (1 - doubt) * 34);
    const colour = `color-mix(in srgb, var(--sl-${own ? "own" : "open"}) ${tint}%, transparent)`;
    return `background: ${lines.join(", ")}, linear-gradient(${colour}, ${colour}); padding-bottom: ${deepest * 5 + 2}px`;
}

/** Solid for a person, dashed for a detector. */
function laneLine({ by, number }) {
    const colour = `var(--sl-lane-${number})`;
    return by === "person"
        ? `linear-gradient(${colour}, ${colour})`
        : `repeating-linear-gradient(90deg, ${colour} 0 6px, transparent 6px 9px)`;
}

const LINES = {
    own: "linear-gradient(var(--sl-own), var(--sl-own))",
    open: "repeating-linear-gradient(90deg, var(--sl-open) 0 6px, transparent 6px 9px)",
    rejected: "repeating-linear-gradient(90deg, var(--sl-rejected) 0 1px, transparent 1px 4px)",
};
