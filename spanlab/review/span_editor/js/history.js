/** The operation log of one annotation, with undo and redo. */

import { EDITS, ReviewState } from "./operations.js";

/**
 * The operation log of one annotation and the state it leads to; mirrors spanlab/oplog.py.
 * Offsets in here are code points, as stored.
 */
export class History {
    /** @param {number} length of the answer in code points */
    constructor(snapshot, operations, length) {
        this.length = length;
        this.version = 0;
        this.edits = [];
        this.undone = [];
        this.checkpoints = [{ depth: 0, state: ReviewState.of(snapshot) }];
        this.state = this.checkpoints[0].state.copy();
        for (const operation of operations) this.push(operation);
    }

    get canUndo() {
        return this.edits.length > 0;
    }

    get canRedo() {
        return this.undone.length > 0;
    }

    /** Append one operation. Throws, changing nothing, if it does not fit. */
    push(operation) {
        if (operation.kind === "undo") this.undo();
        else if (operation.kind === "redo") this.redo();
        else {
            this.edit(operation);
            this.undone = [];
        }
        this.version += 1;
    }

    edit(operation) {
        EDITS[operation.kind](this.state, operation, this.length);
        this.edits.push(operation);
        if (this.edits.length % CHECKPOINT_EVERY === 0) {
            this.checkpoints.push({ depth: this.edits.length, state: this.state.copy() });
        }
    }

    undo() {
        if (!this.canUndo) return;
        this.undone.push(this.edits.pop());
        while (this.checkpoints.at(-1).depth > this.edits.length) this.checkpoints.pop();
        const { depth, state } = this.checkpoints.at(-1);
        this.state = state.copy();
        for (const edit of this.edits.slice(depth)) EDITS[edit.kind](this.state, edit, this.length);
    }

    redo() {
        if (this.canRedo) this.edit(this.undone.pop());
    }
}

const CHECKPOINT_EVERY = 64;

/** The edits left in force among `operations` once undo and redo have done their work. */
export function inForce(operations) {
    const stack = [];
    let undone = [];
    for (const operation of operations) {
        if (operation.kind === "undo") {
            if (stack.length > 0) undone.push(stack.pop());
        } else if (operation.kind === "redo") {
            if (undone.length > 0) stack.push(undone.pop());
        } else {
            stack.push(operation);
            undone = [];
        }
    }
    return stack;
}
