import { send, type Request } from "../api/http";

/** Hands a file of the API to the browser's downloads. */
export async function save(path: string, name: string, request: Request = {}): Promise<void> {
  saveBlob(await (await send(path, request)).blob(), name);
}

export function saveBlob(blob: Blob, name: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

/** Lets a person choose files. */
export function pick(chosen: (files: File[]) => void, options: { accept?: string; multiple?: boolean } = {}): void {
  const input = Object.assign(document.createElement("input"), { type: "file", ...options });
  input.onchange = () => chosen([...(input.files ?? [])]);
  input.click();
}
