/** Items, and which item comes after which, as far as Python has told. */

const AHEAD = 3;
const MOST_ITEMS = 10;

/** What the editor has of a queue: a few items by id, and the neighbours of more. */
export class ItemCache {
    constructor() {
        this.items = new Map();
        this.near = new Map();
    }

    /** Ids of the next few items after `id`, as far as they are known. */
    chain(id) {
        const ids = [];
        for (let next = this.near.get(id)?.next; next && ids.length < AHEAD; next = this.near.get(next)?.next) ids.push(next);
        return ids;
    }

    /** Say whether both content and neighbours of an item are here. */
    knows(id) {
        return this.items.has(id) && this.near.has(id);
    }

    /** The first of the next few items whose content or neighbours are not here yet. */
    ahead(id) {
        return this.chain(id).find((next) => !this.knows(next)) ?? null;
    }

    /** Keep an item and let go of the oldest ones that nobody needs. */
    keep(item, needed) {
        this.items.set(item.id, item);
        const kept = new Set([item.id, ...needed]);
        for (const id of this.items.keys()) {
            if (this.items.size <= MOST_ITEMS) break;
            if (!kept.has(id)) this.items.delete(id);
        }
    }
}
