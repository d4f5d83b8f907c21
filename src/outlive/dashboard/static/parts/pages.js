// @ts-check
// A list that may be very long, page by page: it holds the pages around what is seen, and the cursors of the others.
import { signal } from '../vendor/preact.js';

const KEPT_MAX = 25;

export class Pages {
  /** load(cursor) gives {items, next}; `next` is null on the last page. id(row) tells rows apart. */
  constructor(load, { id = (row) => row.id } = {}) {
    this.load = load;
    this.id = id;
    /** Changes with the list; a view that reads it is drawn again. */
    this.version = signal(0);
    this.error = signal(null);
    this.pages = [];
    this.next = undefined;
    this.loading = new Set();
    this.length = 0;
  }

  /** Whether the end of the list is known. */
  get isWhole() {
    return this.next === null;
  }

  /** Whether anything has been loaded. */
  get isKnown() {
    return this.next !== undefined;
  }

  /** A row; undefined while it is not here. */
  at(index) {
    let before = 0;
    for (const page of this.pages) {
      if (index < before + page.count) return page.items?.[index - before];
      before += page.count;
    }
    return undefined;
  }

  /** All rows that are here. */
  get rows() {
    return this.pages.flatMap((page) => page.items ?? []);
  }

  /** These rows are seen: load what is missing of them and one page ahead, and let go of what is far away. */
  see(from, to) {
    let before = 0;
    let middle = 0;
    for (const [number, page] of this.pages.entries()) {
      const end = before + page.count;
      if (end > from && before < to) {
        middle = number;
        if (page.items === null) this.fetch(number);
      }
      before = end;
    }
    if (!this.isWhole && to + 200 >= this.length) this.fetch(this.pages.length);
    const held = this.pages
      .map((page, number) => [Math.abs(number - middle), page])
      .filter(([, page]) => page.items !== null);
    for (const [, page] of held.sort((a, b) => b[0] - a[0]).slice(0, Math.max(held.length - KEPT_MAX, 0))) {
      if (page !== this.pages[0]) page.items = null;
    }
  }

  async fetch(number) {
    if (this.loading.has(number)) return;
    this.loading.add(number);
    const known = this.pages[number];
    const cursor = known ? known.cursor : this.next;
    try {
      const { items, next } = await this.load(cursor ?? undefined);
      if (known) known.items = items.slice(0, known.count);
      else {
        const held = number === 0 ? new Set() : new Set(this.pages[0].items.map(this.id));
        const fresh = items.filter((row) => !held.has(this.id(row)));
        this.pages.push({ cursor, items: fresh, count: fresh.length });
        this.next = next ?? null;
      }
      this.error.value = null;
      this.changed();
    } catch (error) {
      if (error.name !== 'AbortError') this.error.value = error;
    } finally {
      this.loading.delete(number);
    }
  }

  changed() {
    this.length = this.pages.reduce((sum, page) => sum + page.count, 0);
    this.version.value += 1;
  }

  /** Whether a row is here. */
  has(id) {
    return this.pages.some((page) => page.items?.some((row) => this.id(row) === id));
  }

  /** A row is new, or has changed. A new one goes to the top. */
  put(row) {
    const id = this.id(row);
    for (const page of this.pages) {
      const index = page.items?.findIndex((each) => this.id(each) === id) ?? -1;
      if (index >= 0) {
        if (JSON.stringify(page.items[index]) !== JSON.stringify(row)) {
          page.items[index] = row;
          this.changed();
        }
        return false;
      }
    }
    if (this.pages.length === 0) return false;
    const top = this.pages[0];
    top.items.unshift(row);
    top.count += 1;
    this.changed();
    return true;
  }

  /** A row is in the list no longer, if it is among the first `among`. */
  take(id, among = Infinity) {
    const top = this.pages[0];
    const index = top?.items?.findIndex((each) => this.id(each) === id) ?? -1;
    if (index < 0 || index >= among) return;
    top.items.splice(index, 1);
    top.count -= 1;
    this.changed();
  }

  /** Of the first `among` rows only these are in the list. */
  keep(ids, among) {
    const others =
      this.pages[0]?.items
        ?.slice(0, among)
        .map(this.id)
        .filter((id) => !ids.has(id)) ?? [];
    for (const id of others) this.take(id);
  }
}
