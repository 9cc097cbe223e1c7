import { Cursor } from "./cursor.js";
import { OperationBuilder } from "./operation.js";

/**
 * Returns `[a', b']` for two operations on the same text: `a` then `b'` has the result of `b` then `a'`.
 *
 * `isFirst` tells which text comes first if both insert at the same position: true for that of `a`.
 */
export function transform(a, b, isFirst) {
  if (a.baseLength !== b.baseLength) {
    throw new Error(`can't transform operations for ${a.baseLength} and ${b.baseLength} characters`);
  }
  const left = new Cursor(a);
  const right = new Cursor(b);
  const aPrime = new OperationBuilder();
  const bPrime = new OperationBuilder();
  while (left.kind !== undefined || right.kind !== undefined) {
    if (left.kind === "insert" && (isFirst || right.kind !== "insert")) {
      const inserted = left.take();
      aPrime.add(inserted);
      bPrime.retain(inserted.count);
    } else if (right.kind === "insert") {
      const inserted = right.take();
      aPrime.retain(inserted.count);
      bPrime.add(inserted);
    } else {
      const count = Math.min(left.left, right.left);
      const one = left.take(count);
      const other = right.take(count);
      if (one.kind === "retain" && other.kind === "retain") {
        aPrime.add(one);
        bPrime.add(other);
      } else if (one.kind === "delete" && other.kind === "retain") {
        aPrime.add(one);
      } else if (one.kind === "retain" && other.kind === "delete") {
        bPrime.add(other);
      }
    }
  }
  return [aPrime.build(), bPrime.build()];
}

/** Returns the operation that has the effect of `a` followed by `b`. */
export function compose(a, b) {
  if (a.targetLength !== b.baseLength) {
    throw new Error(`can't compose operations: ${a.targetLength} characters, then ${b.baseLength}`);
  }
  const left = new Cursor(a);
  const right = new Cursor(b);
  const result = new OperationBuilder();
  while (left.kind !== undefined || right.kind !== undefined) {
    if (left.kind === "delete") {
      result.add(left.take());
    } else if (right.kind === "insert") {
      result.add(right.take());
    } else {
      const count = Math.min(left.left, right.left);
      const first = left.take(count);
      const second = right.take(count);
      if (second.kind === "retain") result.add(first);
      else if (first.kind === "retain") result.add(second);
    }
  }
  return result.build();
}
