// The texts of the sign-in.
import { pick } from "../language";

export const words = pick({
  en: {
    signInTitle: "Sign in",
    signInWhy: "This server asks for a key or a token.",
    checking: "Waiting for the server's answer…",
    keyRevoked: "Your key is no longer valid",
    keyRevokedWhy: "It was revoked or has expired. Enter it or a new token to go on: your draft is kept. With another key the page begins anew.",
    keyRefused: "This key was not accepted",
    keyRefusedWhy: "Check it, or enter another one.",
    keyOrToken: "Key or token",
    signIn: "Sign in",
    stay: "Stay signed in on this device",
  },
  de: {
    signInTitle: "Anmelden",
    signInWhy: "Dieser Server verlangt einen Schlüssel oder ein Token.",
    checking: "Der Server wird gefragt …",
    keyRevoked: "Der Schlüssel gilt nicht mehr",
    keyRevokedWhy: "Er wurde widerrufen oder ist abgelaufen. Mit ihm oder einem neuen Token geht es weiter, und der Entwurf bleibt. Mit einem anderen Schlüssel beginnt die Seite von vorn.",
    keyRefused: "Dieser Schlüssel gilt hier nicht",
    keyRefusedWhy: "Ein Tippfehler? Sonst mit einem anderen versuchen.",
    keyOrToken: "Schlüssel oder Token",
    signIn: "Anmelden",
    stay: "Auf diesem Gerät angemeldet bleiben",
  },
});
