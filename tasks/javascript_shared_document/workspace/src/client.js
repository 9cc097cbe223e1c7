import { compose, transform } from "./combine.js";
import { Operation } from "./operation.js";
import { lengthOf } from "./text.js";
import { UndoManager } from "./undo.js";

/** One user's copy of the document. */
export class Client {
  #name;
  #text;
  #revision;
  #send;
  #seq = 0;
  // Submission without an acknowledgment: `{ seq, op }`.
  #inFlight;
  // Changes since that submission, as one operation.
  #buffer;
  #undo;

  constructor(name, { text, revision }, send) {
    this.#name = name;
    this.#text = text;
    this.#revision = revision;
    this.#send = send;
    this.#undo = new UndoManager(name);
  }

  get text() {
    return this.#text;
  }

  get revision() {
    return this.#revision;
  }

  get state() {
    if (this.#inFlight === undefined) return "idle";
    return this.#buffer === undefined ? "waiting" : "buffering";
  }

  /** Replaces `count` characters at `position` with `text`. */
  edit(position, count, text) {
    const op = Operation.replace(lengthOf(this.#text), position, count, text);
    if (op.isNoop()) return;
    const inverse = this.#perform(op);
    this.#undo.record(inverse, count === 0 ? { position, length: text.length } : undefined);
  }

  undo() {
    this.#undo.undo((op) => this.#perform(op));
  }

  redo() {
    this.#undo.redo((op) => this.#perform(op));
  }

  /** Tells the server that the client is back after its connection broke. */
  sayHello() {
    this.#send({ type: "hello", revision: this.#revision });
  }

  handle(message) {
    if (message.type === "ack") {
      this.#acknowledge();
    } else if (message.type === "change") {
      this.#change(message);
    } else if (message.type === "catchup") {
      this.#catchUp(message.entries);
    } else {
      throw new Error(`unknown message \`${message.type}\` from the server`);
    }
  }

  /** Applies a change of the user and returns its inverse. */
  #perform(op) {
    const inverse = op.invert(this.#text);
    this.#text = op.apply(this.#text);
    if (this.#inFlight === undefined) {
      this.#inFlight = { seq: ++this.#seq, op };
      this.#submit();
    } else {
      this.#buffer = this.#buffer === undefined ? op : compose(this.#buffer, op);
    }
    return inverse;
  }

  #submit() {
    const { seq, op } = this.#inFlight;
    this.#send({ type: "submit", revision: this.#revision, seq, op: op.toJSON() });
  }

  #acknowledge() {
    this.#revision += 1;
    this.#inFlight = undefined;
    if (this.#buffer !== undefined) {
      this.#inFlight = { seq: ++this.#seq, op: this.#buffer };
      this.#buffer = undefined;
      this.#submit();
    }
  }

  #change({ author, op: json }) {
    this.#revision += 1;
    const isFirst = this.#name.localeCompare(author) < 0;
    let op = Operation.fromJSON(json);
    if (this.#inFlight !== undefined) {
      [this.#inFlight.op, op] = transform(this.#inFlight.op, op, isFirst);
    }
    this.#undo.rebase(op, author);
    if (this.#buffer !== undefined) {
      [this.#buffer, op] = transform(this.#buffer, op, isFirst);
    }
    this.#text = op.apply(this.#text);
  }

  #catchUp(entries) {
    for (const entry of entries) {
      if (entry.seq === this.#inFlight?.seq) this.#acknowledge();
      else this.#change(entry);
    }
    if (this.#inFlight !== undefined) this.#submit();
  }
}
