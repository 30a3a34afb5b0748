// What a file of an export becomes.
import { ApiError, asError, ask, type Schema } from "../api/http";
import { keep, kept } from "../state/kept";
import { page } from "../state/page.svelte";
import { router, sessionHref } from "../state/route.svelte";
import { sessions, type Session } from "../state/sessions.svelte";
import { ui } from "../state/ui.svelte";
import { words } from "../words";

const underWay = new Set<string>();

/** Opens what the file becomes, if the reader is still in the same place then and writes nothing. The same file is taken once at a time. */
export async function importFile(file: File): Promise<void> {
  const slot = `bobbin.import.${[file.name, file.size, file.lastModified].join()}`;
  if (underWay.has(slot)) return;
  const { place } = router;
  const work = keepFile(file, slot).finally(() => underWay.delete(slot));
  underWay.add(slot);
  ui.toast(words.importing(file.name.slice(0, 40)), undefined, work);
  const id = await work;
  const { value = "", selectionStart = null } = (document.activeElement ?? {}) as Partial<HTMLInputElement>; // an edit, a title, a reason
  if (router.place === place && page.writing.empty && !(value && selectionStart !== null)) router.go(sessionHref(id));
}

/** A conversation of its own, with the title of the file. Until all is in it, it is one that goes by itself: most keys may
 *  not delete what is left of an import that the server refuses. What is in whole is not sent again, unless that has gone. */
async function keepFile(file: File, slot: string): Promise<string> {
  const whole = kept(slot);
  const id = whole || (await sendFile(file));
  keep(slot, id);
  try {
    sessions.update(await ask<Session>(`sessions/${id}`, { method: "PATCH", json: { keep: true } }));
    keep(slot, "");
    return id;
  } catch (e) {
    if (!whole || asError(e).status !== 404) throw e;
    keep(slot, "");
    return keepFile(file, slot);
  }
}

async function sendFile(file: File): Promise<string> {
  const { id } = await sessions.create({ temporary: true, title: file.name.replace(/\.\w+$/, "").slice(0, 200) });
  const { imported } = await ask<Schema["Imported"]>(`sessions/${id}/messages/import`, {
    method: "POST",
    query: { source: "web" },
    body: file,
    headers: { "Content-Type": /\.(jsonl|ndjson)$/i.test(file.name) ? "application/jsonl" : "application/json" },
  });
  if (!imported) throw new ApiError(422, "nothing_imported", "");
  return id;
}
