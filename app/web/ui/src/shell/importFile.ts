// What a file of an export becomes.
import { ApiError, asError, ask, type Schema } from "../api/http";
import { keep, kept } from "../state/kept";
import { router, sessionHref } from "../state/route.svelte";
import { sessions, type Session } from "../state/sessions.svelte";

/** A conversation of its own, with the title of the file. Until all is in it, it is one that goes by itself: most keys may
 *  not delete what is left of an import that the server refuses. What is in whole is not sent again, unless that has gone. */
export async function importFile(file: File): Promise<void> {
  const slot = `bobbin.import.${[file.name, file.size, file.lastModified].join()}`;
  const whole = kept(slot);
  const id = whole || (await sendFile(file));
  keep(slot, id);
  try {
    sessions.update(await ask<Session>(`sessions/${id}`, { method: "PATCH", json: { keep: true } }));
    keep(slot, "");
    router.go(sessionHref(id));
  } catch (e) {
    if (!whole || asError(e).status !== 404) throw e;
    keep(slot, "");
    await importFile(file);
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
