/** The line above the answer: how far the reviewer is, which item it is, what is saved. */

import { h } from "./dom.js";
import { countedWords } from "./finishing.js";
import { STATUS_WORDS, plural, verdictWords } from "./words.js";

/** Progress, item, status, comment and the state of the outbox. */
export class Head {
    constructor(view) {
        this.view = view;
        this.progressText = h("span", { class: "sl-progress-text" });
        this.progressBar = h("div", { class: "sl-progress-bar", "aria-hidden": "true" }, h("div", {}));
        this.finished = h("span", { class: "sl-finished", hidden: "" });
        this.standing = h("span", { class: "sl-standing" });
        this.itemName = h("span", { class: "sl-item" });
        this.status = h("span", { class: "sl-status" });
        this.remark = h("span", { class: "sl-remark", dir: "auto" });
        this.savedText = h("span", { class: "sl-saved", role: "status" });
        this.node = h("header", { class: "sl-head" },
            h("div", { class: "sl-progress" }, this.progressText, this.progressBar),
            this.finished,
            this.standing, this.itemName, this.status, this.remark, this.savedText);
    }

    paint() {
        const { root, editor, actions } = this.view;
        const { item } = editor;
        const { progress } = editor.conversation;
        if (progress) this.paintProgress(progress);
        this.standing.textContent = editor.navigation.standing();
        actions.node.hidden = !item;
        if (!item) {
            this.itemName.textContent = this.status.textContent = this.remark.textContent = "";
            return;
        }
        const { state } = item.history;
        const status = isDraft(item.history) ? "draft" : state.status;
        this.itemName.textContent = `${item.id} · ${item.payload.lang}`;
        this.status.textContent = status === "done" ? doneWords(item.history) : STATUS_WORDS[status];
        this.status.dataset.status = root.dataset.status = status;
        const told = state.note ? `“${state.note}”` : quietWords(item.payload.annotators, editor.names);
        this.remark.textContent = this.remark.title = told;
        actions.paint(item.history, editor.likely());
    }

    paintProgress(progress) {
        const { done, skipped, by_others: others, total, planned } = progress;
        const beside = `${skipped ? `, ${skipped} skipped` : ""}${others ? `, ${others} done by others` : ""}`;
        this.progressText.textContent = `${done} of ${total} done${beside}`;
        this.progressText.title = planned ? `${total} of the items are yours by the plan` : "";
        this.progressBar.firstChild.style.width = `${total ? ((done + skipped + others) / total) * 100 : 0}%`;
        this.paintFinished(progress);
    }

    /** When nothing is left to do: thanks, and where the labels are of use to who may go there. */
    paintFinished({ done, skipped, by_others: others, total, waiting, next = [], completion = "" }) {
        this.finished.hidden = total === 0 || (done + skipped + others < total && !waiting);
        if (this.finished.hidden) return;
        const query = new URLSearchParams({ dataset: this.view.editor.navigation.place.dataset });
        const links = next.map((name) => h("a", { href: `${name.toLowerCase()}?${query}`, target: "_self" }, name));
        const thanks = completion || (links.length ? "All decided." : "All of your items are decided. Thank you.");
        const said = links.length ? `${thanks} Next: ` : thanks;
        this.finished.replaceChildren(said, ...links.flatMap((link, at) => [at === 0 ? "" : at === links.length - 1 ? " or " : ", ", link]));
    }

    saved(outbox) {
        const unsaved = outbox.writes.length;
        const held = outbox.writes.filter((write) => write.held);
        const others = outbox.writes.filter((write) => write.reviewer !== outbox.place?.reviewer);
        this.view.root.dataset.unsaved = String(unsaved);
        const where = outbox.full ? "in this page only" : "in this browser";
        let words = "All saved";
        if (others.length > 0) words = `${others.length} by ${others[0].reviewer} not saved (kept ${where})`;
        else if (held.length > 0) words = `${plural(held.length, "change")} not saved (kept ${where})`;
        else if (outbox.offline) words = unsaved ? `Offline: ${plural(unsaved, "change")} kept ${where}` : "Offline";
        else if (unsaved > 0) words = `Saving ${unsaved}…`;
        this.savedText.replaceChildren(words, ...wayTo(held[0] ?? others[0]));
        this.savedText.title = [...new Set(held.map((write) => `${write.dataset}: ${write.item}`))].join("\n");
        this.savedText.dataset.state = held.length || others.length ? "held" : outbox.offline ? "offline" : unsaved ? "saving" : "saved";
    }
}

/** The way to the item of something that is not saved, if there is any. */
function wayTo(write) {
    if (!write) return [];
    const { dataset, item } = write;
    return [" ", h("a", { href: `?${new URLSearchParams({ dataset, item })}`, target: "_self" }, "Open the item")];
}

/** Verdicts without a place, and which detectors found nothing or failed: marks alone do not say it. */
function quietWords(annotators, names) {
    const judged = annotators.filter((one) => one.status === "done" && verdictWords(one))
        .map((one) => `${names.of(one.name)}: ${verdictWords(one)}`);
    const detectors = annotators.filter((one) => one.kind === "detector" && !verdictWords(one));
    const named = (chosen) => chosen.map(({ name }) => name).join(", ");
    const quiet = detectors.filter(({ status, spans, claims }) => status === "done" && spans.length + claims.length === 0);
    const failed = detectors.filter(({ status }) => status === "failed");
    return [...judged, quiet.length ? `${named(quiet)}: nothing found` : "", failed.length ? `${named(failed)}: failed` : ""].filter(Boolean).join(" · ");
}

/** That it is done, and what that made of suggestions nobody decided. */
function doneWords({ state, edits }) {
    const last = edits.findLast(({ kind }) => kind === "finish" || kind === "status");
    if (state.hallucinated && state.spans.size === 0) return "Done: hallucinated, no place marked";
    if (last?.kind === "finish") return `Done: ${countedWords(last)}`;
    return state.spans.size === 0 ? "Done: checked, no spans" : STATUS_WORDS.done;
}

/** Say whether something was decided on an item that is not done. */
function isDraft({ state, version }) {
    return state.status === "not-annotated" && version > 0
        && (state.spans.size > 0 || state.rejected.length > 0 || state.noted.length > 0 || Boolean(state.note)
            || Object.keys(state.responses).length > 0 || state.claims.size > 0 || state.rejectedClaims.length > 0);
}
