import { lookUpWithRetries } from "./lookup.js";

/**
 * Adds categories to items, several at a time, and passes items on in their order.
 *
 * An item has `record` or `reason`. Items with a reason are passed on as they are. Returns `{ push(item), end() }`. `onItem(item)` is called
 * for each item, `onRoom()` when another item may be pushed, and `onEnd()` after the last item.
 */
export function createEnricher(lookup, concurrency, { onItem, onRoom, onEnd }) {
  const waiting = [];
  let isEnding = false;

  function push(item) {
    const slot = { item, isDone: item.record === undefined };
    waiting.push(slot);
    if (slot.isDone) return flush();
    lookUpWithRetries(lookup, item.record.sku, (error, category) => {
      if (error) slot.item = { ...item, record: undefined, reason: `lookup failed: ${error.message}` };
      else if (category === null) slot.item = { ...item, record: undefined, reason: "unknown SKU" };
      else slot.item = { ...item, record: { ...item.record, category } };
      slot.isDone = true;
      flush();
    });
    if (waiting.length < concurrency) onRoom();
  }

  function flush() {
    while (waiting.length > 0 && waiting[0].isDone) onItem(waiting.shift().item);
    if (isEnding && waiting.length === 0) return onEnd();
    if (!isEnding && waiting.length < concurrency) onRoom();
  }

  return {
    push,
    end() {
      isEnding = true;
      if (waiting.length === 0) onEnd();
    },
  };
}
