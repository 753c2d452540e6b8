/** What annotators are called on the screen: by name, or whoever decides without knowing whom, by letter. */

const STORED = "spanlab.nameless";
const LETTERS = 26;
const KINDS = ["person", "detector"]; // votes and gold labels are nobody's

/** The adjudicator's choice, which this browser remembers, and the letters of the open item. */
export class Names {
    constructor(editor) {
        this.editor = editor;
        this.chosen = remembered();
    }

    get areHidden() {
        return this.chosen && this.editor.adjudicating;
    }

    toggle() {
        this.chosen = !this.chosen;
        try {
            localStorage.setItem(STORED, JSON.stringify(this.chosen));
        } catch {
            // a full or forbidden storage costs the memory of this choice, nothing else
        }
    }

    /** An annotator's name, or the letter that it has on this item. */
    of(name) {
        return this.areHidden ? this.letters().get(name) ?? name : name;
    }

    /** What is said by annotators in the order in which it is shown: with letters, by them, as any other order tells who is who. */
    ordered(said, by = ({ name }) => name) {
        if (!this.areHidden) return said;
        const order = [...this.letters().keys()];
        return said.toSorted((one, two) => order.indexOf(by(one)) - order.indexOf(by(two)));
    }

    /** The same of members of suggestions and claims, and of votes. */
    orderedMembers(members) {
        return this.ordered(members, ({ annotator }) => annotator);
    }

    /** The letters of the open item, in an order that is another one on other items. */
    letters() {
        const { item } = this.editor;
        if (this.lettered?.item !== item) this.lettered = { item, letters: lettersOf(item) };
        return this.lettered.letters;
    }
}

function lettersOf({ id, payload }) {
    const all = KINDS.flatMap((kind) => payload.annotators.filter((one) => one.kind === kind)
        .map(({ name, status }) => ({ name, hasLane: status === "done", place: scattered(`${id}\n${name}`) }))
        .sort((one, two) => two.hasLane - one.hasLane || one.place - two.place));
    return new Map(all.map(({ name }, index) => [name, letter(index)]));
}

function letter(index) {
    const rest = Math.floor(index / LETTERS);
    return `${rest > 0 ? letter(rest - 1) : ""}${String.fromCharCode(65 + (index % LETTERS))}`;
}

/** A number that says nothing of the text it comes from, the same for the same text (FNV-1a, then mixed). */
function scattered(text) {
    let hash = 0x811c9dc5;
    for (let at = 0; at < text.length; at += 1) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193);
    hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
    hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
    return (hash ^ (hash >>> 16)) >>> 0;
}

function remembered() {
    try {
        return JSON.parse(localStorage.getItem(STORED)) === true;
    } catch {
        return false;
    }
}
