/** How long the reviewer works on each item: open to Done, pauses cut. */

const PAUSE = 60_000; // milliseconds: a longer gap between two signs of work counts as this long
const SIGNS = ["keydown", "pointermove", "pointerdown", "wheel", "touchmove"];

/** Adds up time by item. Nothing of it leaves the browser but the seconds of an item that ends. */
export class Clock {
    constructor() {
        this.spent = new Map(); // milliseconds by item
        this.item = null;
        this.since = 0;
        for (const sign of SIGNS) addEventListener(sign, () => this.turnTo(this.item), { capture: true, passive: true });
        document.addEventListener("visibilitychange", () => {
            this.turnTo(this.item); // what was seen until now counts, what is hidden does not
            this.hidden = document.hidden;
        });
    }

    /** Count the time since the last sign of work to the item that was open, and go on with `item`. */
    turnTo(item) {
        const now = performance.now();
        if (this.item !== null && !this.hidden) {
            this.spent.set(this.item, (this.spent.get(this.item) ?? 0) + Math.min(now - this.since, PAUSE));
        }
        this.item = item;
        this.since = now;
    }

    /** The seconds spent on an item until now, which then begins anew. */
    lap(item) {
        this.turnTo(this.item);
        const spent = this.spent.get(item) ?? 0;
        this.spent.delete(item);
        return Math.round(spent / 100) / 10;
    }
}
