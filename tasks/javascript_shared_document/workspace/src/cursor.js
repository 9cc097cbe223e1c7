/** Walks over the components of an operation, in pieces. */
export class Cursor {
  #components;
  #index = 0;
  // What is left of the component at the index.
  #current;

  constructor(operation) {
    this.#components = operation.components;
    this.#current = this.#components[0];
  }

  /** Kind of the current component; `undefined` at the end. */
  get kind() {
    return this.#current?.kind;
  }

  /** Characters that are left of the current component. */
  get left() {
    return this.#current.count;
  }

  /** Takes the current component, or its first `count` characters. */
  take(count = Infinity) {
    const current = this.#current;
    if (count >= current.count) {
      this.#index += 1;
      this.#current = this.#components[this.#index];
      return current;
    }
    const taken = { ...current, count };
    const rest = { ...current, count: current.count - count };
    if (current.kind === "insert") {
      taken.text = current.text.slice(0, count);
      rest.text = current.text.slice(count);
    }
    this.#current = rest;
    return taken;
  }
}
