/** From item to item: which one is open, which one is on its way. */

const NEAR_EVERY = 100;
const NEAR_TRIES = 50;

/** Where the reviewer is. */
export class Navigation {
    constructor(editor) {
        this.editor = editor;
        this.place = null; // dataset, reviewer and queue, as Python names them
        this.open = null;
        this.opening = null;
        this.trail = []; // items behind, the last one left last
        this.path = location.pathname;
        this.numbers = new Map(); // of items in the queue, as far as Python has counted
        this.total = 0;
    }

    /** The item that is open, or on its way. */
    get at() {
        return this.opening ?? this.open;
    }

    go(step) {
        const { view, cache } = this.editor;
        if (this.open === null || this.opening !== null) return view.say("Still opening.");
        if (step < 0 && this.trail.length > 0) return this.turnTo(this.trail.pop());
        const near = cache.near.get(this.open);
        if (!near) return this.waitForNear(step);
        const id = step > 0 ? near.next : near.previous;
        if (!id) {
            return view.say(step > 0 ? "That was the last item here." : "This is the first item.", true);
        }
        if (step > 0) this.trail.push(this.open);
        const number = this.numbers.get(this.open);
        if (number && !this.numbers.has(id)) this.numbers.set(id, number + step);
        return this.turnTo(id);
    }

    /** Open any item of the dataset. */
    jump(id) {
        if (this.open === null || id === this.at) return;
        this.trail.push(this.open);
        this.turnTo(id);
    }

    /** Take in which item of how many one is; Python counts once for a queue, not for every key. */
    stand({ item, number, total }) {
        this.numbers.set(item, number);
        this.total = total;
    }

    /** "3 of 17 in this queue"; empty where it is not known yet. */
    standing() {
        const number = this.numbers.get(this.open);
        if (number === undefined || this.open === null) return "";
        return number ? `${number} of ${Math.max(number, this.total)} in this queue` : `not in this queue, which has ${this.total}`;
    }

    turnTo(id) {
        if (this.isAddressed()) history.pushState(history.state, "", urlOf(id)); // Back returns to the item before
        this.show(id);
    }

    /** Whether the address is that of this page and of the dataset that the editor shows. */
    isAddressed() {
        const { pathname, searchParams } = new URL(location.href);
        return pathname === this.path && searchParams.get("dataset") === this.place?.dataset;
    }

    /** The item that the address names, if it names one of this dataset. */
    addressed() {
        return this.isAddressed() ? new URL(location.href).searchParams.get("item") : null;
    }

    /** Back or Forward: show the item that the address names now. */
    follow() {
        const id = this.addressed();
        if (!id || id === this.at) return;
        if (this.trail.at(-1) === id) this.trail.pop();
        this.show(id);
    }

    show(id) {
        const { conversation, view, cache, outbox } = this.editor;
        this.opening = id;
        conversation.unchecked = cache.items.has(id);
        if (conversation.unchecked) this.tryOpen();
        else view.opening();
        outbox.send();
    }

    /** The key counts as soon as Python has said what comes next, however slow it is. */
    waitForNear(step, patience = NEAR_TRIES) {
        const at = this.open;
        this.editor.view.say("Looking for the item.");
        setTimeout(() => {
            if (this.open !== at || this.opening !== null) return;
            if (this.editor.cache.near.has(at)) this.go(step);
            else if (patience > 0) this.waitForNear(step, patience - 1);
            else this.editor.view.say("The next item has not loaded. Try again.", true);
        }, NEAR_EVERY);
    }

    /** Where Python began, or went on from an item that is gone: the address follows. */
    writeAddress() {
        if (!this.at || !this.isAddressed() || this.addressed() === this.at) return;
        history.replaceState(history.state, "", urlOf(this.at));
    }

    /** Show the item that is on its way, if it is here. */
    tryOpen() {
        const item = this.editor.cache.items.get(this.opening);
        if (this.opening === null || !item) return;
        this.open = this.opening;
        this.opening = null;
        this.editor.show(item);
    }

    /** Fetch the open item anew. */
    reopen() {
        const { cache, conflict, view, outbox } = this.editor;
        cache.items.delete(this.open);
        this.opening = this.open;
        this.open = null;
        conflict.paint();
        view.opening();
        outbox.send();
    }
}

function urlOf(item) {
    const url = new URL(location.href);
    url.searchParams.set("item", item);
    return url;
}
