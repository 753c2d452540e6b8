/** The keyboard: from events to commands, by the table in keys.py. */

/** Key specification → commands in the table's order. */
export function bindings(keys) {
    const map = new Map();
    for (const key of keys) {
        for (const spec of key.keys) map.set(spec, [...(map.get(spec) ?? []), key.command]);
    }
    return map;
}

/** Write a keyboard event the way the key table writes keys. */
export function specOf(event) {
    const digit = event.altKey && /^Digit\d$/.test(event.code); // with Alt a Mac types another character
    const name = event.key === " " ? "Space" : digit ? event.code.at(-1) : event.key;
    const graph = event.getModifierState?.("AltGraph") ?? false;
    const ctrl = (event.ctrlKey || event.metaKey) && !graph;
    const alt = event.altKey && !graph;
    const letter = /^[a-z]$/i.test(name);
    const shift = event.shiftKey && (name.length > 1 || (letter && ctrl));
    const key = letter && ctrl ? name.toLowerCase() : name;
    return `${ctrl ? "Ctrl+" : ""}${alt ? "Alt+" : ""}${shift ? "Shift+" : ""}${key}`;
}

export function keyName(spec) {
    const names = {
        Enter: "↵", ArrowLeft: "←", ArrowRight: "→", ArrowUp: "↑", ArrowDown: "↓", Escape: "Esc",
        Delete: "Del", Backspace: "⌫", PageUp: "PgUp", PageDown: "PgDn",
    };
    return spec.split("+").map((part) => names[part] ?? (spec.length > 1 && /^[a-z]$/.test(part) ? part.toUpperCase() : part)).join("+");
}

export const ONCE = new Set(["guidelines", "findLabel", "findLane", "done", "doneWithAll", "skip", "acceptAll", "nextItem", "previousItem", "help", "items", "trace", "findEvidence"]);
export const FIELDS = new Set([
    "comment", "commentItem", "findEvidence", "items", "findLabel", "findLane", "commentClaim", "writeClaim", "rewordClaim", "findResponse",
]); // commands that open a field to type in: see typing.js
export const ELSEWHERE = new Set([
    "Tab", "Enter", " ", "ArrowUp", "ArrowDown", "ArrowLeft", "ArrowRight", "Home", "End", "PageUp", "PageDown",
]);
const SHARED = new Set([
    "claims", "attributes", "questions", "undo", "redo", "help", "done", "skip", "reopen", "nextItem", "previousItem", "nextTab", "commentItem",
    "nextEvidence", "previousEvidence", "findEvidence", "guidelines", "nextLanes", "previousLanes", "findLane",
]); // commands that mean the same wherever the focus is

/**
 * Run the command of a key pressed in a part of the page that has `bindings` of its own.
 *
 * @returns {boolean} false if the key means there what it means elsewhere
 */
export function runIn(editor, bindings, spec, event) {
    if (event.target.tagName === "BUTTON" && ["Enter", "Space"].includes(spec)) return true;
    const commands = bindings.get(spec) ?? [];
    for (const command of commands) editor.run(command, event, spec.at(-1));
    if (commands.length > 0) event.preventDefault();
    const others = editor.bindings.get(spec) ?? [];
    return commands.length > 0 || (event.key !== "Tab" && !others.some((command) => SHARED.has(command)));
}
