/** What Python has not stored yet. */

import { randomId } from "./ids.js";

/**
 * All writes that Python has not answered yet. They also lie in localStorage, so that neither a
 * reload nor a dead server loses them; (session, seq) makes sending one twice harmless.
 */
export class Outbox {
    constructor() {
        this.session = randomId();
        this.seq = 0;
        this.writes = [];
        this.attempt = 0;
        this.waiting = false;
        this.sentAt = 0;
        this.unanswered = 0; // messages in a row
        this.place = null;
        this.onChange = () => {};
        this.exchange = () => {};
        this.lock();
    }

    get offline() {
        return this.unanswered > 0;
    }

    add(write) {
        this.seq += 1;
        const held = this.holds(write.item);
        this.writes.push({ session: this.session, seq: this.seq, ...write, ...(held ? { held } : {}) });
        this.store();
        this.send();
    }

    /** Writes under the name that the editor shows; those under another wait until it is back. */
    toSend() {
        return this.writes.filter((write) => !write.held && write.reviewer === this.place?.reviewer);
    }

    pending(item) {
        return this.writes.filter((write) => this.concerns(write, item) && !write.held).length;
    }

    /** Say whether writes of this item were refused and wait for the person's decision. */
    holds(item) {
        return this.writes.some((write) => this.concerns(write, item) && write.held);
    }

    /** Writes of one log; datasets may share item ids, and people share a browser. */
    concerns(write, item, place = this.place) {
        return write.item === item && write.dataset === place?.dataset && write.reviewer === place.reviewer;
    }

    /** Start an exchange unless one is under way; its end starts the next if there is need. */
    send() {
        this.onChange();
        if (this.waiting) return;
        this.waiting = true;
        this.sentAt = performance.now();
        this.attempt += 1;
        queueMicrotask(() => this.exchange());
    }

    /** Python's word on one write: stored, or refused with the reason. */
    settle({ session, seq, stored, reason, stale }) {
        const index = this.writes.findIndex((write) => write.session === session && write.seq === seq);
        if (index < 0) return;
        if (stored) {
            this.writes.splice(index, 1);
            return;
        }
        const refused = this.writes[index];
        if (refused.reviewer !== this.place?.reviewer) return;
        Object.assign(refused, { reason, stale });
        for (const write of this.writes) {
            if (this.concerns(write, refused.item, refused)) write.held = true;
        }
    }

    answered(attempt) {
        if (attempt !== this.attempt) return;
        this.waiting = false;
        this.unanswered = 0;
        this.store();
        this.onChange();
    }

    /**
     * No answer in time: the server is gone or the message was lost; send again. Each time later than
     * before: a message may end the run that was to answer the last one, which a busy server never ends.
     */
    retry() {
        const patience = Math.min(PATIENCE * 2 ** this.unanswered, LONGEST_PATIENCE);
        if (!this.waiting || performance.now() - this.sentAt < patience) return;
        this.unanswered += 1;
        this.waiting = false;
        this.send();
    }

    /** Give up the writes of one item and return their operations. */
    drop(item) {
        const dropped = this.writes.filter((write) => this.concerns(write, item));
        this.writes = this.writes.filter((write) => !this.concerns(write, item));
        this.store();
        this.onChange();
        return dropped.map((write) => write.op);
    }

    /**
     * Take over what pages that are gone left behind.
     *
     * @returns the items here that gained writes, and whether this tab's last page still lives
     */
    async adopt() {
        const items = new Set();
        let dying = false;
        for (const key of Object.keys(localStorage)) {
            if (!key.startsWith(STORED) || key === STORED + this.session) continue;
            if (!(await this.isDead(key.slice(STORED.length)))) {
                dying ||= key === STORED + this.before;
                continue;
            }
            const known = new Set(this.writes.map((write) => `${write.session} ${write.seq}`));
            for (const { held, reason, stale, ...write } of parsed(localStorage.getItem(key))) {
                if (known.has(`${write.session} ${write.seq}`)) continue;
                this.writes.push(write);
                if (this.concerns(write, write.item)) items.add(write.item);
            }
            this.store();
            localStorage.removeItem(key);
        }
        return { items: [...items], dying };
    }

    /** A living page holds a lock of its session's name. Without locks: this tab's last page. */
    async isDead(session) {
        if (!navigator.locks) return this.before === session;
        return navigator.locks.request(STORED + session, { ifAvailable: true }, (lock) => lock !== null);
    }

    lock() {
        this.before = sessionStorage.getItem(LAST);
        navigator.locks?.request(STORED + this.session, () => new Promise(() => {}));
        sessionStorage.setItem(LAST, this.session);
    }

    store() {
        try {
            if (this.writes.length === 0) localStorage.removeItem(STORED + this.session);
            else localStorage.setItem(STORED + this.session, JSON.stringify(this.writes));
            this.full = false;
        } catch {
            this.full = true; // storage is full or forbidden: kept in this page only
        }
    }
}

/** The writes that a page left behind; what cannot be read is none. */
function parsed(text) {
    try {
        const writes = JSON.parse(text ?? "[]");
        return Array.isArray(writes) ? writes : [];
    } catch {
        return [];
    }
}

const STORED = "spanlab.outbox.";
const LAST = "spanlab.session";
const PATIENCE = 2500; // milliseconds
const LONGEST_PATIENCE = 10_000;
