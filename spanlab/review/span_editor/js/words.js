/** How things are called on the screen and to a screen reader. */

export const STATUS_WORDS = {
    "not-annotated": "Not annotated yet",
    draft: "Draft",
    done: "Done",
    failed: "Failed",
    skipped: "Skipped",
};

export const KIND_WORDS = { detector: "detector", vote: "vote", gold: "gold labels", person: "person" };
export const STANCE_WORDS = { supports: "supports it", refutes: "refutes it", closest: "closest passage" };

/** What an annotator says of the whole answer; "" for one that marks places. */
export function verdictWords({ verdict = null }) {
    if (verdict === null) return "";
    return verdict ? "hallucinated, no place marked" : "nothing wrong";
}

/** What an annotator is, unless the name says so already. */
export function kindOf({ name, kind }) {
    const words = KIND_WORDS[kind] ?? "";
    return words.split(" ").includes(name) ? "" : words;
}

export function quote(text) {
    const short = [...text].length > 60 ? `${[...text].slice(0, 59).join("")}…` : text;
    return `“${short}”`;
}

/** A mark in words; `names` says what annotators are called. */
export function describe(mark, names) {
    const kind = { own: "your span", open: "suggestion", rejected: "rejected suggestion" }[mark.kind];
    const label = mark.label ? `, ${mark.label}` : "";
    const by = names.orderedMembers(mark.members).map((member) => names.of(member.annotator)).join(", ");
    const prob = mark.kind === "own" ? "" : `, probability ${percent(mark.prob)}`;
    return `${quote(mark.text)}, ${kind}${label}${prob}${by ? `, by ${by}` : ""}`;
}

export function percent(prob) {
    return `${Math.round(prob * 100)} %`;
}

/** Which suggestions are likely, and over which probability. */
export function likelyWords(likely) {
    const named = likely.slice(0, 5).map((piece) => quote(piece.text)).join(", ");
    return `${plural(likely.length, "likely suggestion")}: ${named}${likely.length > 5 ? ", …" : ""}`;
}

export function stanceWords(quote) {
    return ` ${STANCE_WORDS[quote.stance]}${quote.note ? `: ${quote.note}` : ""} `;
}

export function shorten(text, most) {
    const characters = [...text.slice(0, most * 2)];
    return characters.length > most ? `${characters.slice(0, most - 1).join("")}…` : characters.join("");
}

export function plural(count, word) {
    return `${count} ${word}${count === 1 ? "" : "s"}`;
}
