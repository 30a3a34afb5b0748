// The caller's key or token: in this tab, or on this device when the person asked for it.
import type { ApiError } from "../api/http";

const slot = "bobbin.key";

class Auth {
  secret = $state(read());
  /** Why the sign-in is shown; undefined while the server accepts the caller. */
  problem = $state.raw<ApiError>();

  /** End users come with a token; what concerns all conversations is for keys, and for this machine. */
  get isOwner(): boolean {
    return !this.problem && this.secret.split(".").length !== 3;
  }

  signIn(secret: string, remember: boolean): void {
    this.secret = secret.trim();
    this.problem = undefined;
    try {
      sessionStorage.setItem(slot, this.secret);
      if (remember) localStorage.setItem(slot, this.secret);
      else localStorage.removeItem(slot);
    } catch {
      // A browser without storage asks again in the next tab.
    }
  }

  signOut(): void {
    this.secret = "";
    try {
      sessionStorage.removeItem(slot);
      localStorage.removeItem(slot);
    } catch {
      // nothing was kept
    }
  }

  /** A 401 for an older secret says nothing about the present one. */
  refused(error: ApiError, secret: string): void {
    if (secret === this.secret) this.problem = error;
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
