import { compose, transform } from "./combine.js";

/** Steps that one client can undo and redo. Each step is the operation that reverts it. */
export class UndoManager {
  #name;
  #undo = [];
  #redo = [];
  // End of the text that was typed last, if the next text may join its step.
  #openEnd;

  constructor(name) {
    this.#name = name;
  }

  /** Records a change of the user. `typed` has `position` and `length` if it inserted text and did nothing else. */
  record(inverse, typed) {
    if (typed !== undefined && typed.position === this.#openEnd) {
      this.#undo.push(compose(inverse, this.#undo.pop()));
    } else {
      this.#undo.push(inverse);
    }
    this.#openEnd = typed === undefined ? undefined : typed.position + typed.length;
    this.#redo = [];
  }

  /** Adapts all steps to a change of another client. */
  rebase(op, author) {
    this.#openEnd = undefined;
    for (const stack of [this.#undo, this.#redo]) {
      // The last step applies to the current text, the one before it to the text that the last step leads to.
      for (let i = stack.length - 1; i >= 0; i -= 1) {
        [stack[i], op] = transform(stack[i], op, this.#name.localeCompare(author) < 0);
      }
    }
    this.#undo = this.#undo.filter((step) => !step.isNoop());
    this.#redo = this.#redo.filter((step) => !step.isNoop());
  }

  /** Performs the next undo with `perform`, which applies an operation and returns its inverse. */
  undo(perform) {
    this.#move(this.#undo, this.#redo, perform);
  }

  redo(perform) {
    this.#move(this.#redo, this.#undo, perform);
  }

  #move(from, to, perform) {
    this.#openEnd = undefined;
    const step = from.pop();
    if (step !== undefined) to.push(perform(step));
  }
}
