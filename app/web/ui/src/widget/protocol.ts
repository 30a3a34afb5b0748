// What the widget's script, on a page of another origin, and the widget's frame say to each other. No token goes
// from the frame to the page.

export interface Look {
  title: string;
  greeting: string;
  /** #rrggbb, and what is read on it; empty = the design's. */
  accent: string;
  onAccent: string;
  /** light, dark, or empty: like the system. */
  theme: string;
  /** The agent of new conversations; empty = the server's default. */
  agent: string;
}

export type ToFrame = { bobbin: "start"; look: Look; token: string } | { bobbin: "token"; token: string } | { bobbin: "shown" };

export type FromFrame = { bobbin: "ready" } | { bobbin: "token" } | { bobbin: "close" };
