import { ApiError, asError, ask, type Request } from "../api/http";

const pageSize = 50;

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
  private asked = 0;

  constructor(
    private readonly path: string,
    private readonly query: () => Request["query"] = () => ({}),
    /** So many pages are loaded at once, for what is shown whole. */
    private readonly pages = 1,
  ) {}

  /** Loads all that is shown anew, or so much; an answer that a later one has overtaken counts no more. */
  async load(least = this.items.length): Promise<void> {
    const turn = ++this.asked;
    try {
      const limit = Math.min(Math.max(pageSize, least), 200);
      const first = await ask<P>(this.path, { query: { limit, ...this.query() } });
      const items = [...first.items];
      let last = first;
      for (let n = 1; (n < this.pages || items.length < least) && last.next_cursor; n++) {
        last = await ask<P>(this.path, { query: { limit, ...this.query(), cursor: last.next_cursor } });
        items.push(...last.items);
      }
      if (turn !== this.asked) return;
      this.first = first;
      this.items = once(items);
      this.hasMore = last.next_cursor !== null;
      this.failure = undefined;
    } catch (e) {
      if (turn === this.asked) this.failure = asError(e);
    }
  }

  more(): Promise<void> {
    return this.load(this.items.length + pageSize);
  }
}
