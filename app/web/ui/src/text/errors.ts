// What an error says at its place: a title in the page's words, and the server's sentence.
import type { ApiError } from "../api/http";
import { words } from "../words";

export interface Explained {
  title: string;
  detail: string;
  /** It passes by waiting. */
  passing: boolean;
}

export function explain(error: ApiError): Explained {
  const detail = error.message;
  switch (error.status) {
    case 0:
      return { title: words.offlineShort, detail: "", passing: true };
    case 401:
      return { title: words.signedOut, detail, passing: false };
    case 403:
      return { title: error.code === "missing_scope" ? words.mayNotWrite : words.failed, detail, passing: false };
    case 409:
      return { title: ["call_decided", "stale"].includes(error.code) ? words.faster : words.failed, detail, passing: true };
    case 413:
      return { title: words.tooLarge, detail, passing: false };
    case 429:
      return { title: error.code === "spend_limit" ? words.limitSpent : words.tooMany, detail, passing: true };
    case 503:
      return { title: words.restarting, detail, passing: true };
  }
  return { title: error.code === "context_floor" ? words.doesNotFit : words.failed, detail, passing: false };
}
