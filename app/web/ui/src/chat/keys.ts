// Keys inside the thread. It is one stop for Tab, on the message that had the focus last: arrows go between messages,
// Enter into one, where Tab stays, and Esc out of it; letters press the buttons of the focused one.
import { ui } from "../state/ui.svelte";

const controls = ":is(a[href], button, input, textarea, select, summary, [tabindex='0']):not([tabindex='-1'], :disabled)";

export class ThreadKeys {
  private last: Element | undefined;
  /** The stop above it. */
  private above: HTMLElement | undefined;
  /** Tab was pressed last: the focus that comes is not the pointer's. */
  private tab = false;

  constructor(private readonly thread: HTMLElement) {}

  onpointerdown(): void {
    this.tab = false;
  }

  /** Whoever comes by Tab is at one message, not at what is in it. */
  onfocusin(e: FocusEvent): void {
    const from = e.relatedTarget as Element | null;
    const all = this.stops();
    const at = all.findIndex((s) => s.contains(e.target as Element));
    if (this.tab && !this.thread.contains(from)) this.focus(all.find((s) => s === this.last) ?? all.at(-1));
    else if (at >= 0) [this.last, this.above] = [all[at], all[at - 1]];
  }

  /** What had the focus has left the thread: what comes in its place gets it. */
  refocus(): void {
    if (document.activeElement !== document.body || !this.last || this.last.isConnected) return;
    const all = this.stops();
    this.focus(all[all.indexOf(this.above!) + 1]);
  }

  onkeydown(e: KeyboardEvent): void {
    this.tab = e.key === "Tab";
    if (ui.dialog || e.ctrlKey || e.metaKey) return;
    const focused = document.activeElement as HTMLElement;
    const arrow = { ArrowUp: -1, ArrowDown: 1 }[e.key];
    if (focused.closest("dialog") || !(this.thread.contains(focused) || (arrow && e.altKey))) return;
    const at = this.stops().find((s) => s.contains(focused));
    if (arrow && (e.altKey || at === focused)) {
      e.preventDefault();
      return this.step(at, arrow);
    }
    if (e.altKey) return;
    if (e.key === "Tab") return this.leave(e, at, focused);
    if (e.key === "Escape" && at && at !== focused && focused.matches(":focus-visible:not(input, textarea)")) {
      e.preventDefault();
      return at.focus();
    }
    if (at !== focused) return;
    if (e.key === "Enter") {
      e.preventDefault();
      return at.querySelector<HTMLElement>(controls)?.focus();
    }
    const button = ui.letters && at.querySelector<HTMLElement>(`[data-key="${CSS.escape(e.key.toLowerCase())}"]`);
    if (!button) return;
    e.preventDefault();
    button.click();
  }

  /** Messages, and the cards between them. */
  private stops(): HTMLElement[] {
    return [...this.thread.querySelectorAll<HTMLElement>(`.lane > :is(article, :has(${controls}))`)];
  }

  private step(at: HTMLElement | undefined, by: number): void {
    const all = this.stops();
    const to = at ? Math.min(Math.max(all.indexOf(at) + by, 0), all.length - 1) : all.length - 1;
    this.focus(all[to]);
    all[to]?.scrollIntoView({ block: "nearest" });
  }

  private focus(stop: HTMLElement | undefined): void {
    if (!stop) return;
    stop.tabIndex = -1;
    stop.focus();
  }

  /** Inside of a message Tab goes on to what is in it; else out of the thread, from its first or its last element. */
  private leave(e: KeyboardEvent, at: HTMLElement | undefined, focused: HTMLElement): void {
    const inside = at && at !== focused ? [...at.querySelectorAll<HTMLElement>(controls)] : [];
    if (inside[inside.indexOf(focused) + (e.shiftKey ? -1 : 1)]) return;
    const edge = e.shiftKey ? this.thread : this.thread.querySelector<HTMLElement>(".end-of-thread");
    edge?.focus({ preventScroll: true }); // the browser goes on from there
  }
}
