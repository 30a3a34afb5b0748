// What the page itself remembers: theme, open parts, toasts, and the spoken status.
import { SvelteMap } from "svelte/reactivity";
import type { ApiError } from "../api/http";
import { router } from "./route.svelte";

export type Theme = "system" | "light" | "dark";
export type Dialog = { name: "search" } | { name: "keys" } | { name: "switch"; model: string; agent?: string };

export interface Toast {
  id: number;
  text: string;
  undo?: () => void;
}

class Ui {
  theme = $state<Theme>(stored("bobbin.theme", "system") as Theme);
  /** Single letters act on the focused message. */
  letters = $state(stored("bobbin.letters", "on") === "on");
  /** What stands beside the thread. */
  panel = $state<"" | "context" | "slack">("");
  /** The list as a drawer, on narrow screens. */
  drawer = $state(false);
  dialog = $state.raw<Dialog>();
  toasts = $state.raw<Toast[]>([]);
  /** Why the last action failed, by the place where it was asked for. */
  readonly failures = new SvelteMap<string, ApiError>();
  get failure(): ApiError | undefined {
    return this.failures.get(router.place);
  }
  set failure(_: undefined) {
    this.failures.delete(router.place);
  }
  /** Read out by screen readers. */
  status = $state("");
  now = $state(Date.now());
  private count = 0;

  constructor() {
    this.applyTheme();
    setInterval(() => (this.now = Date.now()), 30_000);
  }

  setTheme(theme: Theme): void {
    this.theme = theme;
    store("bobbin.theme", theme);
    this.applyTheme();
  }

  setLetters(on: boolean): void {
    this.letters = on;
    store("bobbin.letters", on ? "on" : "off");
  }

  togglePanel(name: "context" | "slack"): void {
    this.panel = this.panel === name ? "" : name;
  }

  announce(text: string): void {
    this.status = text;
  }

  /** Only for what was done and can be undone, or for what goes on until then. */
  toast(text: string, undo?: () => void, until: Promise<unknown> = new Promise((done) => setTimeout(done, 6000))): void {
    const toast = { id: ++this.count, text, undo };
    this.toasts = [...this.toasts.slice(-2), toast];
    const dismiss = () => this.dismiss(toast.id);
    void until.then(dismiss, dismiss);
  }

  dismiss(id: number): void {
    this.toasts = this.toasts.filter((t) => t.id !== id);
  }

  private applyTheme(): void {
    const root = document.documentElement;
    if (this.theme === "system") delete root.dataset.theme;
    else root.dataset.theme = this.theme;
  }
}

export function stored(slot: string, fallback: string): string {
  try {
    return localStorage.getItem(slot) ?? fallback;
  } catch {
    return fallback;
  }
}

export function store(slot: string, value: string): void {
  try {
    if (value) localStorage.setItem(slot, value);
    else localStorage.removeItem(slot);
  } catch {
    // A full or forbidden storage costs a preference, not the page.
  }
}

export const ui = new Ui();
