/** How the room is shared: where the panel stands, how high the answer may be, how large text is. */

import { h, pressable } from "./dom.js";

const STORED = "spanlab.layout";
const WIDE = "(min-width: 1280px)"; // of the window: evidence stands beside the answer, unless somebody chose
const DEFAULTS = { beside: null, height: 60, width: null, size: 100 };
const USUAL_WIDTH = 57; // per cent; as much as lines that can be read well need, if that is less
const LIMITS = { height: [15, 85], width: [25, 75], size: [80, 160] };
const SIZE_STEP = 10;
const SPLIT_STEP = 5;

/** The layout that this browser remembers, its buttons, and the splitter between answer and panel. */
export class Layout {
    constructor(view) {
        this.view = view;
        this.splitter = h("div", { class: "sl-splitter", role: "separator", tabindex: "0",
            title: "Drag to resize; double-click to reset" });
        this.smaller = this.button("A−", "A−: smaller text", () => this.change("size", this.now.size - SIZE_STEP));
        this.larger = this.button("A+", "A+: larger text", () => this.change("size", this.now.size + SIZE_STEP));
        this.turn = this.button("", "", () => this.set({ beside: !this.isBeside }));
        this.wide = matchMedia(WIDE);
        this.controls = h("div", { class: "sl-layout", role: "group", "aria-label": "Layout" },
            this.smaller, this.larger, this.turn);
        this.now = { ...DEFAULTS, ...stored() };
    }

    button(name, does, act) {
        return pressable(h("button", { class: "sl-button", type: "button", title: does, "aria-label": does }, name), act);
    }

    listen(on) {
        on(this.wide, "change", () => this.arrange());
        on(this.splitter, "pointerdown", (event) => this.drag(event));
        on(this.splitter, "dblclick", () => this.set({ [this.side]: DEFAULTS[this.side] }));
        on(this.splitter, "keydown", (event) => this.key(event));
    }

    /** What the splitter changes: how high the answer may be, or how wide it is, in per cent. */
    get side() {
        return this.isBeside ? "width" : "height";
    }

    get isBeside() {
        return this.now.beside ?? this.wide.matches;
    }

    /** How much of the room the answer has along the side that the splitter changes, in per cent. */
    get share() {
        return this.now[this.side] ?? USUAL_WIDTH;
    }

    paint() {
        const { main } = this.view;
        const { height, width, size } = this.now;
        const beside = this.isBeside;
        main.classList.toggle("sl-beside", beside);
        main.style.setProperty("--sl-height", `${height}%`);
        main.style.setProperty("--sl-floor", height === DEFAULTS.height ? "26em" : "0px");
        main.style.setProperty("--sl-width", width === null ? `min(${USUAL_WIDTH}%, var(--sl-readable))` : `${width}%`);
        main.style.setProperty("--sl-size", String(size / 100));
        const does = beside ? "Evidence below the answer" : "Evidence beside the answer";
        this.turn.textContent = beside ? "⬓" : "◨";
        this.turn.title = does;
        this.turn.setAttribute("aria-label", does);
        this.smaller.disabled = size <= LIMITS.size[0];
        this.larger.disabled = size >= LIMITS.size[1];
        const [least, most] = LIMITS[this.side];
        const values = {
            "aria-label": beside ? "Width of the answer" : "Answer height",
            "aria-orientation": beside ? "vertical" : "horizontal",
            "aria-valuemin": least, "aria-valuemax": most, "aria-valuenow": this.share,
        };
        for (const [name, value] of Object.entries(values)) this.splitter.setAttribute(name, value);
    }

    change(name, value) {
        const [least, most] = LIMITS[name];
        this.set({ [name]: Math.round(Math.max(least, Math.min(most, value))) });
    }

    /** Paint, and place anew what stands at places of the screen. */
    arrange() {
        this.paint();
        if (this.view.editor.item) this.view.caretChanged();
        this.view.list.paint();
    }

    set(changes) {
        Object.assign(this.now, changes);
        this.arrange();
        try {
            localStorage.setItem(STORED, JSON.stringify(this.now));
        } catch { /* a browser without storage forgets */ }
    }

    drag(event) {
        event.preventDefault();
        this.splitter.setPointerCapture(event.pointerId);
        const ending = new AbortController();
        const { signal } = ending;
        const { main, left } = this.view;
        const length = (node) => node.getBoundingClientRect()[this.side];
        const place = ({ clientX, clientY }) => (this.isBeside ? clientX : clientY);
        const from = place(event) - length(left);
        const to = (moved) => this.change(this.side, (100 * (place(moved) - from)) / length(main));
        this.splitter.addEventListener("pointermove", to, { signal });
        for (const end of ["pointerup", "pointercancel"]) this.splitter.addEventListener(end, () => ending.abort(), { signal });
    }

    key(event) {
        const steps = this.isBeside ? { ArrowLeft: -1, ArrowRight: 1 } : { ArrowUp: -1, ArrowDown: 1 };
        const step = steps[event.key];
        if (!step) return;
        event.preventDefault();
        this.change(this.side, this.share + step * SPLIT_STEP);
    }
}

/** What was stored, as far as it can be used. */
function stored() {
    try {
        const found = JSON.parse(localStorage.getItem(STORED)) ?? {};
        const kept = typeof found.beside === "boolean" ? { beside: found.beside } : {};
        for (const [name, [least, most]] of Object.entries(LIMITS)) {
            if (found[name] >= least && found[name] <= most) kept[name] = found[name];
        }
        return kept;
    } catch {
        return {};
    }
}
