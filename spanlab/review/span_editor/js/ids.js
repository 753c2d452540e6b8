/** Ids that no other page makes: of spans, and of the session that writes. */

export function newId() {
    return `s${randomId().slice(0, 12)}`;
}

export function randomId() {
    const bytes = crypto.getRandomValues(new Uint8Array(16));
    return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
