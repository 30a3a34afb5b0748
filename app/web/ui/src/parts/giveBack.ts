import { tick } from "svelte";

/** To the message field, where one goes on. */
export function focusField(): void {
  document.getElementById("message")?.focus();
}

/** Gives the focus, if it is lost by then, back to what has it now: where that has gone, to its row's neighbour or what is around it. */
export function giveBack(): () => Promise<void> {
  const had = document.activeElement as HTMLElement;
  const row = had.closest("tr, .fault");
  const rows = [...(row?.parentElement?.children ?? [])];
  const near = [...rows.slice(rows.indexOf(row!) + 1), ...rows.reverse()];
  const around = had.parentElement?.closest<HTMLElement>("[tabindex]");
  return async () => {
    await tick();
    if (document.activeElement !== document.body) return;
    const all = [had, ...near.flatMap((e) => [...e.querySelectorAll("button")]), around, document.querySelector("main")];
    all.find((e) => e?.isConnected)?.focus();
  };
}
