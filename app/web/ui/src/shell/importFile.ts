// What a file of an export becomes.
import { ApiError, ask, type Schema } from "../api/http";
import { router, sessionHref } from "../state/route.svelte";
import { sessions, type Session } from "../state/sessions.svelte";

/** What is in whole, and not kept: the same file is not sent again. */
let whole: { name: string; id: string } | undefined;

/** A conversation of its own, with the title of the file. Until all is in it, it is one that goes by itself: most keys may
 *  not delete what is left of an import that the server refuses. */
export async function importFile(file: File): Promise<void> {
  const name = [file.name, file.size, file.lastModified].join();
  const { id } = whole?.name === name ? whole : (whole = { name, id: await sendFile(file) });
  const json = { keep: true, title: file.name.replace(/\.\w+$/, "").slice(0, 200) };
  sessions.update(await ask<Session>(`sessions/${id}`, { method: "PATCH", json }));
  whole = undefined;
  router.go(sessionHref(id));
}

async function sendFile(file: File): Promise<string> {
  const { id } = await sessions.create({ temporary: true });
  const { imported } = await ask<Schema["Imported"]>(`sessions/${id}/messages/import`, {
    method: "POST",
    query: { source: "web" },
    body: file,
    headers: { "Content-Type": /\.(jsonl|ndjson)$/i.test(file.name) ? "application/jsonl" : "application/json" },
  });
  if (!imported) throw new ApiError(422, "nothing_imported", "");
  return id;
}
