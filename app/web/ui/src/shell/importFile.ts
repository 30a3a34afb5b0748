// What a file of an export becomes.
import { ApiError, ask, type Schema } from "../api/http";
import { router, sessionHref } from "../state/route.svelte";
import { sessions, type Session } from "../state/sessions.svelte";

async function importInto(session: Session, file: File): Promise<void> {
  const { imported } = await ask<Schema["Imported"]>(`sessions/${session.id}/messages/import`, {
    method: "POST",
    query: { source: "web" },
    body: file,
    headers: { "Content-Type": /\.(jsonl|ndjson)$/i.test(file.name) ? "application/jsonl" : "application/json" },
  });
  if (!imported) throw new ApiError(422, "nothing_imported", "");
}

/** Into a conversation of its own, with the title of the file; before that into one that goes by itself: most keys may
 *  not delete what is left of an import that the server refuses. */
export async function importFile(file: File): Promise<void> {
  const trial = await sessions.create({ temporary: true });
  await importInto(trial, file);
  await ask(`sessions/${trial.id}`, { method: "DELETE" }).catch(() => {});
  const kept = await sessions.create({ title: file.name.replace(/\.\w+$/, "").slice(0, 200) });
  await importInto(kept, file).catch(async (e) => {
    await sessions.archive(kept.id);
    throw e;
  });
  router.go(sessionHref(kept.id));
}
