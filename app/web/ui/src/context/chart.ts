// The numbers of the chart: turns as columns, merged where there are too many, and the scale beside them.
import type { Turn } from "./context.svelte";

const mostColumns = 120;

export interface Column {
  /** Counted from 1 over the whole conversation. */
  first: number;
  last: number;
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
export function uncompacted(turns: Turn[], i: number): number {
  const turn = turns[i];
  const before = turns[i - 1];
  const known = (t: Turn) => t.summary_version === 0 || t.without > t.used;
  // Another window is another model, which counts its tokens in its own way.
  if (!turn || !known(turn) || (before && (!known(before) || before.usable !== turn.usable))) return 0;
  // `without` has no summary at all: what the one before saved is taken off again.
  return before ? turn.without - (before.without - before.used) : turn.without;
}

/** One column per turn; beyond the most, neighbors become one with the values of the largest. */
export function columnsOf(turns: Turn[], omitted: number, most = mostColumns): Column[] {
  const size = Math.max(1, Math.ceil(turns.length / most));
  const columns: Column[] = [];
  for (let i = 0; i < turns.length; i += size) {
    const group = turns.slice(i, i + size);
    const largest = group.reduce((a, b) => (b.used > a.used ? b : a));
    const made = turns.findLastIndex((t, at) => t.summarized && at >= i && at < i + size);
    const fixed = ["system", "tools", "pinned", "standing"].reduce((sum, name) => sum + (largest.sections[name] ?? 0), 0);
    const summary = largest.sections.summary ?? 0;
    columns.push({
      first: omitted + i + 1,
      last: omitted + i + group.length,
      used: largest.used,
      usable: largest.usable,
      trigger: largest.trigger,
      fixed,
      summary,
      messages: Math.max(0, largest.used - fixed - summary),
      without: made < 0 ? 0 : uncompacted(turns, made),
      version: turns[made]?.summary_version ?? 0,
      masked: group.some((t, at) => t.masked && !turns[i + at - 1]?.masked),
    });
  }
  return columns;
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

export function shortNumber(n: number): string {
  if (n < 1000) return String(Math.round(n));
  const thousands = n / 1000;
  return `${thousands >= 100 || Number.isInteger(thousands) ? Math.round(thousands) : thousands.toFixed(1)}k`;
}
