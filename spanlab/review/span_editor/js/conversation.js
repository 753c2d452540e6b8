/** The conversation with Python: what it is told and what it answers; its other end is exchange.py. */

import { Item } from "./item.js";
import { plural } from "./words.js";

const LEAVING = 10_000; // ms in which another page has come, of a busy server, too, or does not come any more

/** One editor's end of the conversation, over the wire that Streamlit mounts. */
export class Conversation {
    constructor(editor, wire) {
        this.editor = editor;
        this.wire = wire;
        this.told = null; // the item that Python was last told of
        this.known = null; // the item that Python last answered with
        this.unchecked = false; // the open item came from the cache: ask for its version
        this.stashed = null; // items that came while the outbox takes over what other pages left
        this.taken = null; // an item that others have or are to have, until it is shown
        this.leftAt = -Infinity;
        this.path = location.pathname;
        this.listeners = new AbortController();
        const { signal } = this.listeners;
        document.addEventListener("click", (event) => this.onClick(event), { capture: true, signal });
        window.addEventListener("popstate", () => this.leaveFor(location), { signal });
    }

    onClick(event) {
        const link = event.target.closest?.("a[href]");
        const elsewhere = event.ctrlKey || event.metaKey || event.shiftKey || link?.target === "_blank" || link?.hasAttribute("download");
        if (link && !elsewhere) this.leaveFor(link);
    }

    leaveFor({ origin, pathname }) {
        if (origin === location.origin && pathname !== this.path) this.leftAt = performance.now();
    }

    /**
     * Say whether people are on their way to another page. Streamlit clears that page when a
     * message of this one arrives meanwhile: it takes it for a return.
     */
    isLeaving() {
        return performance.now() - this.leftAt < LEAVING;
    }

    get cache() {
        return this.editor.cache;
    }

    /** Leave the wire; what was open is noted for a page that comes back before Python hears of it. */
    end() {
        const { wire } = this;
        const { place, at } = this.editor.navigation;
        this.listeners.abort();
        if (wire.editor !== this.editor) return;
        wire.left = place && { place, item: at, python: [this.told, this.known] };
        wire.receive = null;
        wire.editor = null;
        wire.component = null;
    }

    /** Tell Python everything it does not know yet. */
    exchange() {
        const { outbox, navigation, view } = this.editor;
        if (this.isLeaving()) {
            outbox.waiting = false;
            setTimeout(() => this.wire.editor === this.editor && outbox.send(), LEAVING);
            return;
        }
        const { at } = navigation;
        const sent = {
            writes: outbox.toSend(),
            attempt: outbox.attempt,
            place: navigation.place?.id ?? null,
            open: at,
            have: [...this.cache.items.keys()],
            near: !this.cache.near.has(at),
            ahead: this.cache.ahead(at),
            check: this.unchecked,
            trace: view.trace.wanted(),
            items: view.items.wanted(),
            evidence: view.evidence.form.wanted(),
            confirmed: view.guidelines.wanted(),
            standing: !navigation.numbers.has(at),
        };
        this.unchecked = false;
        this.told = sent.open;
        this.wire.component?.setStateValue("outbox", sent);
    }

    /** Take in what Python answered: results of writes, items, neighbours, progress. */
    receive(component) {
        const { outbox, navigation, view, conflict } = this.editor;
        const answer = component.data;
        this.wire.component = component;
        if (!answer?.place) return;
        const moved = answer.place.id !== navigation.place?.id;
        if (moved) this.enter(answer);
        else if (this.isGone(answer)) this.enter(answer);
        this.known = answer.open;
        for (const result of answer.results) outbox.settle(result);
        outbox.answered(answer.attempt);
        for (const [id, near] of Object.entries(answer.near)) this.cache.near.set(id, near);
        this.taken = answer.taken ?? this.taken;
        for (const payload of answer.items) this.keep(payload);
        if (answer.trace) view.trace.receive(answer.trace);
        if (answer.evidence_added) view.evidence.form.receive(answer.evidence_added);
        if (answer.guidelines_read !== null) view.guidelines.receive(answer.guidelines_read, moved);
        if (answer.items_found) view.items.receive(answer.items_found);
        if (answer.standing) navigation.stand(answer.standing);
        if (answer.progress) this.advance(answer.progress, moved);
        this.checkVersions(answer.versions);
        navigation.tryOpen();
        this.sayTaken();
        navigation.writeAddress();
        view.head.paint();
        conflict.paint();
        if (this.wants()) outbox.send();
    }

    /** Say whether the item that is shown is gone: Python was told of it and answers with another. */
    isGone({ open, attempt }) {
        const { outbox, navigation } = this.editor;
        return attempt === outbox.attempt && this.told === navigation.at && open !== this.told;
    }

    /** Another dataset, reviewer or queue: forget what no longer holds, open what Python says. */
    enter(answer) {
        const { navigation, outbox, view } = this.editor;
        const before = navigation.place;
        view.notice.hide();
        navigation.place = answer.place;
        navigation.trail = [];
        navigation.numbers.clear();
        this.cache.near.clear();
        outbox.place = answer.place;
        this.inherit();
        if (["dataset", "reviewer", "blind", "decided_at_once"].every((name) => before?.[name] === answer.place[name])) {
            if (answer.open !== null && answer.open === navigation.open) return;
        } else {
            this.cache.items.clear();
        }
        const { at } = navigation;
        navigation.open = null;
        this.editor.item = null;
        navigation.opening = this.begin(answer, before, at);
        if (answer.open === null) view.empty(answer.empty);
    }

    /**
     * The item to begin with. A queue that is merely read again stays where the editor is, which
     * may have gone on since Python was asked; another one of the same dataset begins with
     * Python's. Else it is the one that the address names: so may have Back and Forward.
     * Without one it is Python's, but where an excursion to another page was quicker than our last
     * words to Python, the one that we were at.
     */
    begin({ open, place }, before, at) {
        const { left } = this.wire;
        const last = before ?? left?.place;
        this.wire.left = null;
        const isReadAgain = before && before.id !== place.id && queueOf(before) === queueOf(place);
        if (isReadAgain && open !== null) return at ?? open; // with the same id, the item that was open is gone
        const back = !before && last?.id === place.id;
        if (open === null || (last?.dataset === place.dataset && !back)) return open;
        const behind = back && left.python.includes(open);
        return this.editor.navigation.addressed() ?? (behind ? left.item : open);
    }

    /**
     * Take over what pages that are gone left behind. No item is shown meanwhile: it would lack
     * those writes. A page of this tab that is still on its way out is asked for again.
     */
    async inherit(patience = 20) {
        const { outbox, navigation, view } = this.editor;
        this.stashed ??= [];
        const { items, dying } = await outbox.adopt().catch(() => ({ items: [], dying: false })); // storage may be forbidden
        for (const id of items) this.cache.items.delete(id);
        if (items.includes(navigation.open)) {
            navigation.opening = navigation.open;
            view.opening();
        }
        const stashed = this.stashed ?? [];
        this.stashed = null;
        for (const payload of stashed) this.keep(payload);
        navigation.tryOpen();
        if (this.wants()) outbox.send();
        if (dying && patience > 0) setTimeout(() => this.inherit(patience - 1), 250);
    }

    /** Take in how far the reviewer is, and say so when the last item is decided, of theirs or of the queue. */
    advance(progress, moved) {
        const left = (now) => (now.waiting ? 0 : now.total - now.done - now.skipped - now.by_others);
        const before = this.progress;
        this.progress = progress;
        const remaining = left(progress);
        if (moved || !before || left(before) <= remaining) return;
        const { item, navigation, view } = this.editor;
        if (remaining > 0) {
            const isLast = this.cache.near.get(navigation.open)?.next === null && item?.history.state.status !== "not-annotated";
            if (isLast) view.say(`That was the last item here, but ${remaining} ${remaining === 1 ? "is" : "are"} still undecided.`, true);
            return;
        }
        const decided = progress.done + progress.skipped;
        const whose = progress.planned ? " assigned to you" : "";
        view.say(`${decided === 1 ? `The item${whose} is` : `All ${decided} items${whose}`} decided. Thank you.`, true);
    }

    /** A link or a row of the table led to an item that others have meanwhile: say who, offer the next. */
    sayTaken() {
        const { navigation, view: { notice } } = this.editor;
        if (!this.taken || this.taken.item !== navigation.open) return;
        const { item, by } = this.taken;
        this.taken = null;
        const names = by.length > 2 ? `${by[0]}, ${by[1]} and ${plural(by.length - 2, "other")}` : by.join(" and ");
        const next = () => {
            notice.hide();
            navigation.go(1);
        };
        const why = `${names} ${by.length === 1 ? "has" : "have"} this item already, which is enough by the plan.`;
        const button = { name: "Next free item", key: "PageDown", act: next };
        notice.show(`${why} You can still annotate it.`, [button], { item });
    }

    /** Say whether Python still has to tell something: an item, its neighbours, the next one. */
    wants() {
        const { outbox, navigation, view } = this.editor;
        if (outbox.toSend().length > 0) return true;
        if (this.stashed) return false; // what came is looked at first
        if (view.trace.wanted() || view.items.wanted() || view.guidelines.wanted()) return true;
        const { at } = navigation;
        if (at === null || at === undefined) return false;
        return at !== this.told || !navigation.numbers.has(at) || !this.cache.knows(at) || this.cache.ahead(at) !== null;
    }

    keep(payload) {
        const { outbox, navigation } = this.editor;
        if (outbox.holds(payload.id) && this.cache.items.has(payload.id)) return;
        if (outbox.pending(payload.id) > 0) return; // its log is about to grow
        if (this.stashed) {
            this.stashed.push(payload);
            return;
        }
        const item = new Item(payload);
        this.cache.keep(item, [navigation.open, navigation.opening, ...this.cache.chain(navigation.at)]);
        if (navigation.open === item.id) this.editor.show(item);
    }

    /** An item changed elsewhere while nothing of ours is under way: fetch it anew. */
    checkVersions(versions) {
        const { outbox, navigation } = this.editor;
        for (const [id, version] of Object.entries(versions)) {
            const item = this.cache.items.get(id);
            if (!item || outbox.pending(id) > 0 || outbox.holds(id)) continue;
            if (item.history.version !== version) this.cache.items.delete(id);
        }
        const { open, opening } = navigation;
        if (open !== null && !this.cache.items.has(open) && opening === null) navigation.opening = open;
    }
}

/** The name of a queue whichever marks of others it shows, and however often items were decided at once. */
function queueOf({ id }) {
    const { decided_at_once: _times, query: { blind: _blind, ...query }, ...rest } = JSON.parse(id);
    return JSON.stringify({ query, ...rest });
}
