/** Characters that an operation names. */

export function checkExtent(start, end, length) {
    if (!(start >= 0 && start < end && end <= length)) {
        throw new Error(`[${start}, ${end}) is not a part of the answer's ${length} characters`);
    }
}
