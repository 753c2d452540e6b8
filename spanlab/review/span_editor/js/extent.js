/** Checks of what an operation names. */

export function checkExtent(start, end, length) {
    if (!(start >= 0 && start < end && end <= length)) {
        throw new Error(`[${start}, ${end}) is not a part of the answer's ${length} characters`);
    }
}

/** What an operation takes over, each with the id it gets. */
export function named(kind, ids, marks) {
    if (ids.length !== marks.length) throw new Error(`${kind} has ${ids.length} ids for ${marks.length} suggestions`);
    if (new Set(ids).size < ids.length) throw new Error(`${kind} has an id twice`);
    return ids.map((id, index) => [id, marks[index]]);
}
