// The numbers of the chart: turns as columns, and the scale beside them.
import { locale } from "../language";
import type { Turn } from "./context.svelte";

export interface Column {
  /** The turn, counted from 1 over the whole conversation. */
  turn: number;
  /** The last of its turns. */
  through: number;
  used: number;
  usable: number;
  trigger: number;
  /** System prompt, tools and what is pinned. */
  fixed: number;
  summary: number;
  messages: number;
  /** Without the version that came into use there; 0 = not known. */
  without: number;
  /** The version that came into use there; 0 = none. */
  version: number;
  /** Old tool results are masked from there on. */
  masked: boolean;
}

/** What the prompt of a turn would have been if no other version of the summary had come into use there; 0 = not known. */
function uncompacted(turns: Turn[], i: number): number {
  const turn = turns[i];
  const before = turns[i - 1];
  const known = (t: Turn) => t.summary_version === 0 || t.without > t.used;
  // Another window is another model, which counts its tokens in its own way.
  if (!turn || !known(turn) || (before && (!known(before) || before.usable !== turn.usable))) return 0;
  // `without` has no summary at all: what the one before saved is taken off again.
  return before ? turn.without - (before.without - before.used) : turn.without;
}

/** A column a turn; where there are too many to be seen, neighbors become one: the largest of them, with the marks of all. */
export function merged(columns: Column[], most: number): Column[] {
  const each = Math.ceil(columns.length / most);
  if (each <= 1) return columns;
  return Array.from({ length: Math.ceil(columns.length / each) }, (_, i) => {
    const some = columns.slice(i * each, (i + 1) * each);
    const largest = some.reduce((a, b) => (b.used > a.used ? b : a));
    const { version = 0, without = 0 } = some.findLast((c) => c.version) ?? {};
    return { ...largest, turn: some[0]!.turn, through: some.at(-1)!.turn, version, without, masked: some.some((c) => c.masked) };
  });
}

export function columnsOf(turns: Turn[], omitted = 0): Column[] {
  return turns.map((t, i) => {
    const fixed = ["system", "tools", "pinned", "standing"].reduce((sum, name) => sum + (t.sections[name] ?? 0), 0);
    const summary = t.sections.summary ?? 0;
    return {
      turn: omitted + i + 1,
      through: omitted + i + 1,
      used: t.used,
      usable: t.usable,
      trigger: t.trigger,
      fixed,
      summary,
      messages: Math.max(0, t.used - fixed - summary),
      without: t.summarized ? uncompacted(turns, i) : 0,
      version: t.summarized ? t.summary_version : 0,
      masked: Boolean(t.masked && !turns[i - 1]?.masked),
    };
  });
}

/** Round values from 0 to the top, about four of them. */
export function ticksOf(top: number): number[] {
  const rough = top / 3.5;
  const unit = 10 ** Math.floor(Math.log10(Math.max(rough, 1)));
  const step = [1, 2, 2.5, 5, 10].map((n) => n * unit).find((n) => n >= rough) ?? 10 * unit;
  const ticks: number[] = [];
  for (let t = 0; t <= top; t += step) ticks.push(t);
  return ticks;
}

/** 12,400 as 12.4k: an axis has no room for more. */
export function shortNumber(n: number): string {
  const unit = n >= 1e6 ? "M" : n >= 1000 ? "k" : "";
  return (n / (n >= 1e6 ? 1e6 : n >= 1000 ? 1000 : 1)).toLocaleString(locale, { maximumFractionDigits: 1 }) + unit;
}
