// The caller's key or token: in this tab, or on this device when the person asked for it.
import type { ApiError } from "../api/http";
import { forgetPerson, framed } from "./kept";

const slot = "bobbin.key";
/** Tells the other tabs who has signed out. */
const tabs = channel();

class Auth {
  secret = $state(read());
  /** Why the sign-in is shown; undefined while the server accepts the caller. */
  problem = $state.raw<ApiError>();
  /** Whoever signed in last is not who uses the page now: it is loading anew, and asks nothing more. */
  left = false;
  /** The last secret that the server has accepted: what the page shows and keeps is that person's. */
  accepted = this.secret;
  private remember = false;
  /** A person has signed in, and the server has not answered yet. */
  trying = $state(false);

  /** End users come with a token; what concerns all conversations is for keys, and for this machine. */
  get isOwner(): boolean {
    return !this.problem && this.secret.split(".").length !== 3;
  }

  /** The sign-in stays until the server has accepted the secret. */
  signIn(secret: string, remember: boolean): void {
    this.secret = secret.trim();
    this.remember = remember;
    this.trying = true;
  }

  constructor() {
    if (tabs && !framed) tabs.onmessage = ({ data }) => this.secret && data === personOf(this.secret) && this.leave();
  }

  /** In every tab of the same person. */
  signOut(): void {
    tabs?.postMessage(personOf(this.secret));
    this.leave();
  }

  private leave(): void {
    forgetPerson();
    this.beginAnew();
  }

  /** The server has answered to a secret. Somebody else's drafts, messages and thread go before anything is shown. */
  accept(secret: string): void {
    if (secret !== this.secret || (!this.trying && (framed || secret === this.accepted))) return; // a frame keeps no token
    const another = this.accepted !== "" && personOf(secret) !== personOf(this.accepted);
    if (another) forgetPerson();
    this.store(secret);
    this.accepted = secret;
    this.trying = false;
    if (another) this.beginAnew();
    else this.problem = undefined;
  }

  /** By the server, or it could not say. An answer to an older secret says nothing about the present one. */
  refused(error: ApiError, secret: string): void {
    if (secret !== this.secret) return;
    this.problem = error;
    this.trying = false;
  }

  private store(secret: string): void {
    try {
      sessionStorage.setItem(slot, secret);
      if (this.remember) localStorage.setItem(slot, secret);
      else localStorage.removeItem(slot);
    } catch {
      // A browser without storage asks again in the next tab.
    }
  }

  private beginAnew(): void {
    this.left = true;
    location.hash = "#/";
    location.reload();
  }
}

/** Tokens are replaced; whom they are for stays. */
export function personOf(secret: string): string {
  try {
    const { iss, sub } = JSON.parse(atob(secret.split(".")[1]!.replace(/-/g, "+").replace(/_/g, "/"))) as Record<string, string>;
    return sub ? `${iss} ${sub}` : secret;
  } catch {
    return secret; // a key
  }
}

function channel(): BroadcastChannel | undefined {
  try {
    return new BroadcastChannel("bobbin.signed-out");
  } catch {
    return undefined; // a browser without storage: each tab is for itself
  }
}

function read(): string {
  try {
    return sessionStorage.getItem(slot) ?? localStorage.getItem(slot) ?? "";
  } catch {
    return "";
  }
}

export const auth = new Auth();
