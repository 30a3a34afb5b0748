import { tick } from "svelte";

/** Gives the focus, if it is lost by then, back to what has it now: where that has gone, to its row's neighbour or the page. */
export function giveBack(): () => Promise<void> {
  const had = document.activeElement as HTMLElement;
  const row = had.closest("tr, .fault");
  const rows = [...(row?.parentElement?.children ?? [])];
  const near = [...rows.slice(rows.indexOf(row!) + 1), ...rows.reverse()];
  return async () => {
    await tick();
    if (document.activeElement !== document.body) return;
    const [next] = near.flatMap((e) => (e.isConnected ? [...e.querySelectorAll("button")] : []));
    (had.isConnected ? had : (next ?? document.querySelector("main")))?.focus();
  };
}
