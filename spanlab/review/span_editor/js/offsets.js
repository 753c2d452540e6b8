/**
 * Code points ↔ UTF-16 units. Stored offsets are code points, JavaScript counts UTF-16 units, and
 * this is the only bridge between them.
 */

/** The offsets of one text, in both ways of counting. */
export class Offsets {
    constructor(whole) {
        this.whole = whole;
        this.index();
    }


    /** Count code points before every INDEX_EVERY-th unit; without astral characters nothing. */
    index() {
        const { whole } = this;
        this.table = null;
        this.points = whole.length;
        if (!/[\ud800-\udbff][\udc00-\udfff]/.test(whole)) return;
        this.table = [];
        let points = 0;
        for (let unit = 0; unit < whole.length; unit += 1) {
            if (unit % INDEX_EVERY === 0) this.table.push(points);
            if (!isSecondHalf(whole, unit)) points += 1;
        }
        this.points = points;
    }

    /** The UTF-16 unit at which code point `point` begins. */
    unit(point) {
        if (!this.table) return point;
        const slot = lastAtMost(this.table, point);
        let unit = slot * INDEX_EVERY;
        if (isSecondHalf(this.whole, unit)) unit += 1;
        for (let points = this.table[slot]; points < point; points += 1) {
            unit += isSecondHalf(this.whole, unit + 1) ? 2 : 1;
        }
        return unit;
    }

    /** How many code points lie before UTF-16 unit `unit`. */
    point(unit) {
        if (!this.table) return unit;
        const slot = Math.min(Math.floor(unit / INDEX_EVERY), this.table.length - 1);
        let points = this.table[slot];
        for (let at = slot * INDEX_EVERY; at < unit; at += 1) if (!isSecondHalf(this.whole, at)) points += 1;
        return points;
    }
}

const INDEX_EVERY = 256;

function isSecondHalf(text, unit) {
    const code = text.charCodeAt(unit);
    if (!(code >= 0xdc00 && code <= 0xdfff) || unit === 0) return false;
    const before = text.charCodeAt(unit - 1);
    return before >= 0xd800 && before <= 0xdbff;
}

/** Index of the last element that is at most `value` in a sorted list; -1 if there is none. */
export function lastAtMost(list, value, of = (element) => element) {
    let low = 0;
    let high = list.length;
    while (low < high) {
        const middle = (low + high) >> 1;
        if (of(list[middle]) <= value) low = middle + 1;
        else high = middle;
    }
    return low - 1;
}
