import { lengthOf, slice } from "./text.js";

/**
 * A change of a whole text. Components have `kind` (`retain`, `insert` or `delete`), `count` (number of characters) and,
 * for inserts, `text`.
 */
export class Operation {
  constructor(components) {
    this.components = components;
  }

  static fromJSON(json) {
    const builder = new OperationBuilder();
    for (const part of json) {
      if (typeof part === "string") builder.insert(part);
      else if (part > 0) builder.retain(part);
      else builder.delete(-part);
    }
    return builder.build();
  }

  /** Operation that replaces `count` characters at `position` of a text with `length` characters. */
  static replace(length, position, count, text) {
    if (position < 0 || count < 0 || position + count > length) {
      throw new RangeError(`position ${position} and count ${count} don't fit a text of ${length} characters`);
    }
    return new Operation(
      [
        { kind: "retain", count: position },
        { kind: "delete", count },
        { kind: "insert", count: lengthOf(text), text },
        { kind: "retain", count: length - position - count },
      ].filter((component) => component.count > 0),
    );
  }

  /** Length of the texts that the operation applies to. */
  get baseLength() {
    return sum(this.components, "insert");
  }

  /** Length of the resulting text. */
  get targetLength() {
    return sum(this.components, "delete");
  }

  isNoop() {
    return this.components.every(({ kind }) => kind === "retain");
  }

  apply(text) {
    if (lengthOf(text) !== this.baseLength) {
      throw new Error(`operation for ${this.baseLength} characters applied to ${lengthOf(text)}`);
    }
    let position = 0;
    let result = "";
    for (const { kind, count, text: inserted } of this.components) {
      if (kind === "insert") {
        result += inserted;
      } else {
        if (kind === "retain") result += slice(text, position, position + count);
        position += count;
      }
    }
    return result;
  }

  /** Returns the operation that reverts this one, which applies to `text`. */
  invert(text) {
    let position = 0;
    const components = this.components.map(({ kind, count }) => {
      if (kind === "insert") return { kind: "delete", count };
      const start = position;
      position += count;
      if (kind === "retain") return { kind, count };
      return { kind: "insert", count, text: slice(text, start, position) };
    });
    return new Operation(components);
  }

  toJSON() {
    return this.components.map(({ kind, count, text }) => {
      if (kind === "insert") return text;
      return kind === "retain" ? count : -count;
    });
  }
}

/** Builds an operation in normal form. */
export class OperationBuilder {
  #components = [];

  retain(count) {
    return this.add({ kind: "retain", count });
  }

  delete(count) {
    return this.add({ kind: "delete", count });
  }

  insert(text) {
    return this.add({ kind: "insert", count: lengthOf(text), text });
  }

  add(component) {
    if (component.count === 0) return this;
    const components = this.#components;
    let end = components.length;
    // An insert goes in front of a delete.
    if (component.kind === "insert" && components[end - 1]?.kind === "delete") end -= 1;
    const last = components[end - 1];
    if (last?.kind === component.kind) {
      last.count += component.count;
      if (last.kind === "insert") last.text += component.text;
    } else {
      components.splice(end, 0, component);
    }
    return this;
  }

  build() {
    return new Operation(this.#components);
  }
}

function sum(components, excluded) {
  return components.reduce((total, { kind, count }) => (kind === excluded ? total : total + count), 0);
}
