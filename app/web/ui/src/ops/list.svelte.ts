import { ApiError, asError, ask, type Request } from "../api/http";

interface Page<Item> {
  items: Item[];
  next_cursor: string | null;
}

interface Listed {
  id?: string;
  key?: string;
}

/** Each item once: one that moves in a list comes on two of its pages. */
export function once<Item extends Listed>(items: Item[]): Item[] {
  return [...new Map(items.map((item) => [item.id ?? item.key, item])).values()];
}

/** A list of the API, page by page. */
export class List<Item extends Listed, P extends Page<Item> = Page<Item>> {
  items = $state.raw<Item[]>([]);
  /** The first page, with what it says beside its items. */
  first = $state.raw<P>();
  hasMore = $state(false);
  failure = $state.raw<ApiError>();
  private cursor: string | null = null;
  private asked = 0;

  constructor(
    private readonly path: string,
    private readonly query: () => Request["query"] = () => ({}),
    /** So many pages are loaded at once, for what is shown whole. */
    private readonly pages = 1,
  ) {}

  /** Loads all that is shown anew; an answer that a later one has overtaken counts no more. */
  async load(): Promise<void> {
    const turn = ++this.asked;
    try {
      const had = this.items.length;
      const limit = Math.min(Math.max(50, had), 200);
      const first = await ask<P>(this.path, { query: { limit, ...this.query() } });
      const items = [...first.items];
      let last = first;
      for (let n = 1; (n < this.pages || items.length < had) && last.next_cursor; n++) {
        last = await ask<P>(this.path, { query: { limit, ...this.query(), cursor: last.next_cursor } });
        items.push(...last.items);
      }
      if (turn !== this.asked) return;
      this.first = first;
      this.items = once(items);
      this.keep(last);
    } catch (e) {
      if (turn === this.asked) this.failure = asError(e);
    }
  }

  async more(): Promise<void> {
    const turn = ++this.asked;
    try {
      const page = await ask<P>(this.path, { query: { ...this.query(), cursor: this.cursor ?? undefined } });
      if (turn !== this.asked) return;
      this.items = once([...this.items, ...page.items]);
      this.keep(page);
    } catch (e) {
      if (turn === this.asked) this.failure = asError(e);
    }
  }

  private keep(page: P): void {
    this.cursor = page.next_cursor;
    this.hasMore = page.next_cursor !== null;
    this.failure = undefined;
  }
}
