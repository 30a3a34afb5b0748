// Files on their way into a message: loaded to the server when they are chosen.
import { type ApiError, asError, ask, type Schema } from "../api/http";
import { bytesOf } from "../text/format";
import { words } from "../words";
import { Retry } from "./retry.svelte";

/** A file that the server has. */
export type Stored = Required<Pick<Schema["Blob"], "id" | "name" | "size">>;

export class Attachment {
  stored = $state.raw<Stored>();
  problem = $state.raw<ApiError>();
  readonly again = new Retry(() => this.upload());

  constructor(
    private readonly file: File | Stored,
    public onstored?: () => void,
  ) {
    if (file instanceof File) void this.upload();
    else this.stored = file;
  }

  /** As the server keeps it, without marks that turn it around. */
  get name(): string {
    return this.stored?.name ?? this.file.name;
  }

  get refused(): boolean {
    return Boolean(this.problem && !this.problem.passesIn);
  }

  get note(): string {
    if (this.stored) return bytesOf(this.stored.size);
    if (!this.problem) return words.uploading;
    return this.refused ? this.problem.sentence || this.problem.title : words.uploadWaits;
  }

  private async upload(): Promise<void> {
    const file = this.file as File;
    const body = new FormData();
    body.append("file", file, file.name || "pasted");
    try {
      const { id, name, size } = await ask<Schema["Blob"]>("blobs", { method: "POST", body });
      this.stored = { id, name, size };
      this.problem = undefined;
      this.onstored?.();
    } catch (e) {
      this.problem = asError(e);
      this.again.after(this.problem);
    }
  }
}
