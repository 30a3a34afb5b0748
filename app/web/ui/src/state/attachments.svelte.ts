// Files on their way into a message: loaded to the server when they are chosen.
import { ApiError, asError, ask, type Schema } from "../api/http";
import { explain } from "../text/errors";
import { bytesOf } from "../text/format";
import { words } from "../words";

const largest = 20 * 1024 * 1024; // files.bytes

export class Attachment {
  blob = $state.raw<Schema["Blob"]>();
  problem = $state.raw<ApiError>();
  constructor(readonly file: File) {}

  get note(): string {
    if (this.problem) return this.problem.message || explain(this.problem).title;
    return this.blob ? bytesOf(this.blob.size) : words.uploading;
  }
}

export class Attachments {
  items = $state.raw<Attachment[]>([]);

  get blocked(): boolean {
    return this.items.some((a) => !a.blob);
  }

  get refused(): Attachment | undefined {
    return this.items.find((a) => a.problem);
  }

  add(files: Iterable<File>): void {
    for (const file of files) {
      const attachment = new Attachment(file);
      this.items = [...this.items, attachment];
      void this.upload(attachment);
    }
  }

  remove(attachment: Attachment): void {
    this.items = this.items.filter((a) => a !== attachment);
  }

  clear(): void {
    this.items = [];
  }

  private async upload(attachment: Attachment): Promise<void> {
    const { file } = attachment;
    if (file.size > largest) {
      attachment.problem = new ApiError(413, "too_large", words.fileTooLarge(bytesOf(file.size)));
      return;
    }
    const body = new FormData();
    body.append("file", file, file.name || "pasted");
    try {
      attachment.blob = await ask<Schema["Blob"]>("blobs", { method: "POST", body });
    } catch (e) {
      attachment.problem = asError(e);
    }
  }
}
