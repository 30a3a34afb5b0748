// The books by day and agent, as columns of a chart.
import { tokensOf, utcDay, type UsageRow } from "./operation.svelte";

const mostAgents = 4;

export interface Column {
  day: string;
  total: number;
  /** By agent, in the order of the legend. */
  parts: number[];
}

export interface UsageChart {
  byCost: boolean;
  /** "" = all others; without a total if no call has a price. */
  agents: { name: string; total: number | undefined }[];
  columns: Column[];
}

/** A key of the books: the day, a space, and the agent. */
export function splitKey(key: string): [day: string, agent: string] {
  return [key.slice(0, 10), key.slice(11)];
}

/** Costs, or tokens where no model has a price. */
export function chartOf(rows: UsageRow[], days: number): UsageChart {
  const byCost = rows.some((r) => r.cost_micro_usd > 0);
  const amountOf = (r: UsageRow) => (byCost ? costOf(r) : tokensOf(r));
  const add = (a?: number, b?: number) => (a === undefined ? b : a + (b ?? 0));
  const totals = new Map<string, number | undefined>();
  for (const r of rows) {
    const [, agent] = splitKey(r.key);
    totals.set(agent, add(totals.get(agent), amountOf(r)));
  }
  const ranked = [...totals].map(([name, total]) => ({ name, total })).sort((a, b) => (b.total ?? -1) - (a.total ?? -1));
  const rest = ranked.slice(mostAgents).map((a) => a.total).reduce(add, undefined);
  const agents = ranked.length > mostAgents ? [...ranked.slice(0, mostAgents), { name: "", total: rest }] : ranked;
  const columns = Array.from({ length: days }, (_, i): Column => {
    const day = utcDay(days - 1 - i);
    const parts = agents.map(() => 0);
    for (const r of rows) {
      const [on, agent] = splitKey(r.key);
      if (on !== day) continue;
      const at = agents.findIndex((a) => a.name === agent);
      parts[at < 0 ? agents.length - 1 : at]! += amountOf(r) ?? 0;
    }
    return { day, parts, total: parts.reduce((sum, n) => sum + n, 0) };
  });
  return { byCost, agents, columns };
}

/** Three or four round numbers up to the largest. */
export function ticksTo(most: number): number[] {
  if (most <= 0) return [0];
  const rough = most / 3;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((n) => n * power).find((n) => n >= rough) ?? rough;
  return Array.from({ length: Math.ceil(most / step) + 1 }, (_, i) => i * step);
}

/** What it cost, in millionths of a dollar; undefined = no call of it has a price. */
export function costOf(row: Pick<UsageRow, "cost_micro_usd" | "unpriced_calls">): number | undefined {
  return row.cost_micro_usd || !row.unpriced_calls ? row.cost_micro_usd : undefined;
}

/** A table for spreadsheets. */
export function csvOf(rows: UsageRow[]): string {
  const cell = (value: string | number) => `"${String(value).replace(/^[=+\-@\t\r]/, "'$&").replaceAll('"', '""')}"`;
  const head = ["day", "agent", "calls", "input_tokens", "cache_read_tokens", "output_tokens", "cost_usd"];
  const lines = rows.map((r) => {
    const cost = costOf(r);
    return [...splitKey(r.key), r.calls, r.input_tokens, r.cache_read_tokens, r.output_tokens, cost === undefined ? "" : cost / 1e6];
  });
  return [head, ...lines].map((line) => line.map(cell).join(",")).join("\r\n") + "\r\n";
}
