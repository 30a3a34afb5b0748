// The books by day and agent, as columns of a chart.
import { dollars } from "../text/format";
import { tokensOf, utcDay, type UsageRow } from "./operation.svelte";
import { words } from "./words";

const mostAgents = 4;

type Sum = Pick<UsageRow, "calls" | "input_tokens" | "output_tokens" | "cost_micro_usd" | "unpriced_calls">;

export interface Column {
  day: string;
  total: Sum;
  /** By agent, in the order of the legend. */
  parts: Sum[];
}

export interface UsageChart {
  byCost: boolean;
  /** name: "" = calls without an agent, undefined = all others. */
  agents: { name: string | undefined; total: Sum }[];
  columns: Column[];
  /** The length of a part. */
  amountOf(sum: Sum): number;
}

/** A key of the books: the day, a space, and the agent, which is "" for embeddings. */
export function splitKey(key: string): [day: string, agent: string] {
  return [key.slice(0, 10), key.slice(11)];
}

export function agentName(name: string | undefined): string {
  return name === undefined ? words.others : name || words.noAgent;
}

function sumOf(rows: Sum[]): Sum {
  const sum = (name: keyof Sum) => rows.reduce((n, r) => n + r[name], 0);
  return { calls: sum("calls"), input_tokens: sum("input_tokens"), output_tokens: sum("output_tokens"), cost_micro_usd: sum("cost_micro_usd"), unpriced_calls: sum("unpriced_calls") };
}

/** Costs, or tokens where no model has a price. */
export function chartOf(rows: UsageRow[], days: number): UsageChart {
  const byCost = rows.some((r) => r.cost_micro_usd > 0);
  const amountOf = (sum: Sum) => (byCost ? sum.cost_micro_usd : tokensOf(sum));
  const names = [...new Set(rows.map((r) => splitKey(r.key)[1]))];
  const groupOf = (name: string | undefined, own: UsageRow[]) => ({ name, own, total: sumOf(own) });
  const ranked = names.map((name) => groupOf(name, rows.filter((r) => splitKey(r.key)[1] === name))).sort((a, b) => amountOf(b.total) - amountOf(a.total));
  const rest = ranked.slice(mostAgents).flatMap((a) => a.own);
  const agents = rest.length ? [...ranked.slice(0, mostAgents), groupOf(undefined, rest)] : ranked;
  const columns = Array.from({ length: days }, (_, i): Column => {
    const day = utcDay(days - 1 - i);
    const parts = agents.map((a) => sumOf(a.own.filter((r) => splitKey(r.key)[0] === day)));
    return { day, parts, total: sumOf(parts) };
  });
  return { byCost, agents, columns, amountOf };
}

/** Three or four round numbers up to the largest. */
export function ticksTo(most: number): number[] {
  if (most <= 0) return [0];
  const rough = most / 3;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((n) => n * power).find((n) => n >= rough) ?? rough;
  return Array.from({ length: Math.ceil(most / step) + 1 }, (_, i) => i * step);
}

/** What it cost, or cost at least: not every call has a price. */
export function costText({ cost_micro_usd, unpriced_calls }: Pick<UsageRow, "cost_micro_usd" | "unpriced_calls">, digits?: number): string {
  return cost_micro_usd || !unpriced_calls ? dollars(cost_micro_usd, digits, unpriced_calls > 0) : "–";
}

/** A table for spreadsheets. */
export function csvOf(rows: UsageRow[]): string {
  const cell = (value: string | number) => `"${String(value).replace(/^[=+\-@\t\r]/, "'$&").replaceAll('"', '""')}"`;
  const head = ["day", "agent", "calls", "input_tokens", "cache_read_tokens", "output_tokens", "cost_usd", "unpriced_calls"];
  const lines = rows.map((r) => {
    const [day, agent] = splitKey(r.key);
    const cost = r.cost_micro_usd || !r.unpriced_calls ? r.cost_micro_usd / 1e6 : "";
    return [day, agentName(agent), r.calls, r.input_tokens, r.cache_read_tokens, r.output_tokens, cost, r.unpriced_calls];
  });
  return [head, ...lines].map((line) => line.map(cell).join(",")).join("\r\n") + "\r\n";
}
