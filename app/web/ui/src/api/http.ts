// Requests to the API: where it is, who asks, and what an error says.
import type { components } from "./schema";
import { textOf } from "../language";
import { sentenceOf } from "../problems.svelte";
import { auth } from "../state/auth.svelte";
import { words } from "../words";

export type Schema = components["schemas"];

/** The API below the page's own address, so that a path prefix of a proxy is kept. */
export const apiBase = new URL("api/v1/", document.baseURI).href;

const provider = " The provider says: "; // so the error of a run goes on

/** An answer that is not 2xx, or no answer at all: then the status is 0 and there is no request id. */
export class ApiError extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    /** The server's own words, which are English; empty or a text of the page, if it is the page's error. */
    said: string,
    readonly requestId = "",
    /** Seconds after which the server wants to be asked again; 0 = it did not say. */
    readonly retryAfter = 0,
  ) {
    super(said);
  }

  private get said(): string {
    return this.message.split(provider)[0]!;
  }

  /** The page's own sentence, where it has one. */
  private get own(): string {
    return textOf(words.problems, this.code, sentenceOf(this.said, sentenceOf(this.code, "")));
  }

  /** What went wrong and what to do, with what a provider said of it: in the page's words, else in the server's. */
  get sentence(): string {
    const said = this.message.split(provider)[1];
    return (this.own || this.said) + (said ? ` ${words.providerSays} ${said}` : "");
  }

  /** The server's sentence, where the page has its own. */
  get detail(): string {
    return this.own && this.said;
  }

  /** The language of the sentence; undefined for that of the page. */
  get lang(): "en" | undefined {
    return this.own || this.offline ? undefined : "en";
  }

  /** What it is, in few words of the page; the sentence says more. */
  get title(): string {
    const { mayNotWrite, faster, doesNotFit, limitSpent, offlineShort, signedOut, tooLarge, tooMany, restarting, unavailable, notLookedUp, failed } = words;
    const byCode = {
      missing_scope: mayNotWrite, call_decided: faster, stale: faster, context_floor: doesNotFit, spend_limit: limitSpent,
      not_ready: restarting, stopping: restarting, slack_unreadable: notLookedUp,
    };
    const byStatus = { 0: offlineShort, 401: signedOut, 413: tooLarge, 429: tooMany, 503: unavailable };
    return textOf(byCode, this.code, textOf(byStatus, String(this.status), failed));
  }

  /** It passes by waiting. */
  get passing(): boolean {
    return [0, 409, 429, 503].includes(this.status);
  }

  get offline(): boolean {
    return this.status === 0;
  }

  /** Seconds after which it may have passed by itself; 0 = it does not pass. */
  get passesIn(): number {
    if (this.code === "spend_limit") return 0;
    return this.retryAfter || ([0, 502, 503, 504].includes(this.status) ? 2 : 0);
  }
}

export function asError(e: unknown): ApiError {
  if (e instanceof ApiError) return e;
  return new ApiError(0, "offline", e instanceof Error ? e.message : String(e));
}

export interface Request {
  method?: string;
  query?: Record<string, string | number | boolean | undefined>;
  json?: unknown;
  body?: BodyInit;
  headers?: Record<string, string>;
  signal?: AbortSignal;
}

/** Sends a request with the caller's key, and throws an ApiError for every answer that is not 2xx. */
export async function send(path: string, request: Request = {}): Promise<Response> {
  if (auth.left) await new Promise(() => {});
  const url = new URL(path, apiBase);
  for (const [name, value] of Object.entries(request.query ?? {})) {
    if (value !== undefined && value !== "") url.searchParams.set(name, String(value));
  }
  const headers: Record<string, string> = { ...request.headers };
  const secret = auth.secret;
  if (secret) headers.Authorization = `Bearer ${secret.replace(/[^\x20-\x7e]/g, "?")}`; // what no header can have is no key
  if (request.json !== undefined) headers["Content-Type"] = "application/json";
  let response: Response;
  try {
    response = await fetch(url, {
      method: request.method ?? "GET",
      headers,
      body: request.json !== undefined ? JSON.stringify(request.json) : request.body,
      signal: request.signal,
      credentials: "omit",
      cache: "no-store",
      referrerPolicy: "no-referrer",
    });
  } catch (e) {
    if (request.signal?.aborted) throw e;
    throw new ApiError(0, "offline", words.offlineShort);
  }
  if (response.ok || response.status === 403) auth.accept(secret);
  if (auth.left) await new Promise(() => {});
  if (response.ok) return response;
  const error = await readProblem(response);
  if (error.status === 401) auth.refused(error, secret);
  throw error;
}

/** Asks for JSON; an answer without a body is undefined. */
export async function ask<T>(path: string, request: Request = {}): Promise<T> {
  const response = await send(path, request);
  if (response.status === 204) return undefined as T;
  return (await response.json()) as T;
}

async function readProblem(response: Response): Promise<ApiError> {
  const requestId = response.headers.get("X-Request-Id") ?? "";
  const retryAfter = Number(response.headers.get("Retry-After")) || 0;
  try {
    const problem = (await response.json()) as Schema["Problem"];
    const detail = problem.detail || problem.title;
    return new ApiError(response.status, problem.code, detail, problem.request_id || requestId, retryAfter);
  } catch {
    return new ApiError(response.status, "", response.statusText, requestId, retryAfter);
  }
}
