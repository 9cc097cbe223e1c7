import { transform } from "./combine.js";
import { Operation } from "./operation.js";

/** Brings the changes of all clients into one order. */
export class Server {
  #text;
  #history = [];
  #processed = new Map();
  #send;

  /** `send(name, message)` sends a message to a connected client, and `broadcast(message, except)` to all but one. */
  constructor(text, { send, broadcast }) {
    this.#text = text;
    this.#send = { send, broadcast };
  }

  get text() {
    return this.#text;
  }

  /** Returns what a new client needs. */
  snapshot() {
    return { text: this.#text, revision: this.#history.length };
  }

  handle(name, message) {
    if (message.type === "hello") this.#catchUp(name, message);
    else if (message.type === "submit") this.#submit(name, message);
    else throw new Error(`unknown message \`${message.type}\` from ${name}`);
  }

  #catchUp(name, { revision }) {
    const entries = this.#history.slice(revision).map(({ author, seq, op }) => ({ author, seq, op: op.toJSON() }));
    this.#send.send(name, { type: "catchup", entries });
  }

  #submit(name, { revision, seq, op: json }) {
    if (seq <= (this.#processed.get(name) ?? 0)) return;
    let op = Operation.fromJSON(json);
    for (const past of this.#history.slice(revision)) {
      [op] = transform(op, past.op, name < past.author);
    }
    this.#text = op.apply(this.#text);
    this.#history.push({ author: name, seq, op });
    this.#processed.set(name, seq);
    this.#send.send(name, { type: "ack", seq });
    this.#send.broadcast({ type: "change", author: name, seq, op: op.toJSON() }, name);
  }
}
