// Where the nodes of an agent's graph are drawn: the way from its start to its end in one line, all else beside it.
import type { Schema } from "../api/http";

export type Graph = Schema["GraphView"];

export interface Box {
  id: string;
  x: number;
  y: number;
  width: number;
  height: number;
}

export interface Edge {
  source: string;
  target: string;
  dashed: boolean;
  path: string;
  label?: { text: string; x: number; y: number; anchor: "start" | "middle" | "end" };
}

export interface Layout {
  boxes: Box[];
  edges: Edge[];
  width: number;
  height: number;
}

export const startNode = "__start__";
export const endNode = "__end__";

const isEnd = (id: string) => id === startNode || id === endNode;

/** The shortest way from the start to the end. */
export function spineOf(graph: Graph): string[] {
  const before = new Map<string, string>([[startNode, ""]]);
  for (const at of before.keys()) {
    for (const e of graph.edges) if (e.source === at && !before.has(e.target)) before.set(e.target, at);
  }
  const way: string[] = [];
  for (let at: string | undefined = before.has(endNode) ? endNode : ""; at; at = before.get(at)) way.unshift(at);
  return way;
}

/** Lays the graph out from left to right, or from top to bottom. */
export function layoutOf(graph: Graph, label: (edge: Graph["edges"][number]) => string, upright: boolean): Layout {
  const spine = spineOf(graph);
  const boxes = upright ? rowsOf(graph, spine) : columnsOf(graph, spine, label);
  const of = new Map(boxes.map((b) => [b.id, b]));
  const edges = graph.edges.flatMap((e) => {
    const [from, to] = [of.get(e.source), of.get(e.target)];
    return from && to ? [{ source: e.source, target: e.target, dashed: e.conditional, ...lineOf(from, to, label(e), upright) }] : [];
  });
  const width = Math.max(...boxes.map((b) => b.x + b.width)) + 14;
  return { boxes, edges, width, height: Math.max(...boxes.map((b) => b.y + b.height)) + 10 };
}

/** Those beside the way, each with the node of the way that leads to it. */
function besides(graph: Graph, spine: string[]): { id: string; by: string }[] {
  return graph.nodes
    .filter((n) => !spine.includes(n.id))
    .map((n) => ({ id: n.id, by: graph.edges.find((e) => e.target === n.id && spine.includes(e.source))?.source ?? spine[0] ?? startNode }));
}

function columnsOf(graph: Graph, spine: string[], label: (edge: Graph["edges"][number]) => string): Box[] {
  const boxes: Box[] = [];
  let x = 14;
  for (const [i, id] of spine.entries()) {
    const width = isEnd(id) ? 64 : Math.max(150, id.length * 8 + 36);
    boxes.push({ id, x, y: isEnd(id) ? 46 : 36, width, height: isEnd(id) ? 32 : 52 });
    const out = graph.edges.find((e) => e.source === id && e.target === spine[i + 1]);
    x += width + (out && label(out) ? 130 : 32);
  }
  for (const { id, by } of besides(graph, spine)) {
    const above = boxes.find((b) => b.id === by)!;
    boxes.push({ id, x: above.x, y: above.y + 101, width: above.width, height: 46 });
  }
  return boxes;
}

function rowsOf(graph: Graph, spine: string[]): Box[] {
  const boxes: Box[] = [];
  const beside = besides(graph, spine);
  const width = Math.max(170, ...spine.map((id) => id.length * 8 + 24));
  let y = 4;
  for (const id of spine) {
    const has = beside.some((b) => b.by === id);
    const height = isEnd(id) ? 28 : has ? 56 : 42;
    boxes.push({ id, x: isEnd(id) ? 12 + width / 2 - 32 : 12, y, width: isEnd(id) ? 64 : width, height });
    y += height + (has ? 54 : 18);
  }
  for (const { id, by } of beside) {
    const at = boxes.find((b) => b.id === by)!;
    boxes.push({ id, x: at.x + at.width + 40, y: at.y, width: Math.max(90, id.length * 8 + 14), height: at.height });
  }
  return boxes;
}

/** An arrow from one box to another. Between a node of the way and one beside it, both directions have a lane. */
function lineOf(from: Box, to: Box, text: string, upright: boolean): Pick<Edge, "path" | "label"> {
  const middle = (b: Box) => ({ x: b.x + b.width / 2, y: b.y + b.height / 2 });
  const [a, b] = [middle(from), middle(to)];
  const down = b.y > a.y;
  if (upright) {
    if (Math.abs(a.x - b.x) < 1) {
      const [y, end] = down ? [from.y + from.height, to.y] : [from.y, to.y + to.height];
      return { path: `M${a.x} ${y}V${end}`, label: labelOf(text, a.x + 8, (y + end) / 2 + 4, "start") };
    }
    const right = b.x > a.x;
    const y = Math.max(from.y, to.y) + (right ? 0.3 : 0.7) * Math.min(from.height, to.height);
    return { path: right ? `M${from.x + from.width} ${y}H${to.x}` : `M${from.x} ${y}H${to.x + to.width}` };
  }
  if (Math.abs(a.y - b.y) < 1) {
    const [x, end] = b.x > a.x ? [from.x + from.width, to.x] : [from.x, to.x + to.width];
    return { path: `M${x} ${a.y}H${end}`, label: labelOf(text, (x + end) / 2, a.y - 8, "middle") };
  }
  const x = Math.max(from.x, to.x) + (down ? 0.34 : 0.66) * Math.min(from.width, to.width);
  const [y, end] = down ? [from.y + from.height, to.y] : [from.y, to.y + to.height];
  return { path: `M${x} ${y}V${end}`, label: labelOf(text, x + (down ? -8 : 8), (y + end) / 2 + 4, down ? "end" : "start") };
}

function labelOf(text: string, x: number, y: number, anchor: "start" | "middle" | "end"): Edge["label"] {
  return text ? { text, x, y, anchor } : undefined;
}
