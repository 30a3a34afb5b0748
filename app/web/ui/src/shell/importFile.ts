// What a file of an export becomes.
import { ApiError, ask, type Schema } from "../api/http";
import { router, sessionHref } from "../state/route.svelte";
import { sessions } from "../state/sessions.svelte";

/** Refuses what no history is before a conversation is made for it: most keys may not delete one. */
function checkHistory(text: string, lines: boolean): void {
  if (/^\s*(\[\s*\])?\s*$/.test(text)) throw new ApiError(422, "nothing_imported", "");
  try {
    for (const part of lines ? text.split("\n") : [text]) if (part.trim()) JSON.parse(part);
  } catch {
    throw new ApiError(422, "not_json", "");
  }
}

/** Into a conversation of its own, with the title of the file. */
export async function importFile(file: File): Promise<void> {
  const lines = /\.(jsonl|ndjson)$/i.test(file.name);
  checkHistory(await file.text(), lines);
  const created = await sessions.create({ title: file.name.replace(/\.\w+$/, "").slice(0, 200) });
  try {
    const { imported } = await ask<Schema["Imported"]>(`sessions/${created.id}/messages/import`, {
      method: "POST",
      query: { source: "web" },
      body: file,
      headers: { "Content-Type": lines ? "application/jsonl" : "application/json" },
    });
    if (!imported) throw new ApiError(422, "nothing_imported", "");
  } catch (e) {
    const deleted = ask("deletions", { method: "POST", json: { session_id: created.id } });
    await deleted.catch(() => ask(`sessions/${created.id}`, { method: "DELETE" })).catch(() => {});
    sessions.drop(created.id);
    throw e;
  }
  router.go(sessionHref(created.id));
}
