import { Client } from "./client.js";
import { Server } from "./server.js";

/** Connects clients with a server by queues that only move when they are told to. */
export class Network {
  #server;
  #links = new Map();

  constructor(text) {
    this.#server = new Server(text, {
      send: (name, message) => this.#links.get(name).toClient.push(JSON.stringify(message)),
      broadcast: (message, except) => {
        for (const [name, link] of this.#links) {
          if (name !== except && link.isConnected) link.toClient.push(JSON.stringify(message));
        }
      },
    });
  }

  get server() {
    return this.#server;
  }

  join(name) {
    if (this.#links.has(name)) throw new Error(`\`${name}\` has joined already`);
    const link = { toServer: [], toClient: [], isConnected: true };
    link.client = new Client(name, this.#server.snapshot(), (message) => {
      if (link.isConnected) link.toServer.push(JSON.stringify(message));
    });
    this.#links.set(name, link);
  }

  client(name) {
    return this.#link(name).client;
  }

  /** Lets the server handle a message of a client. Returns false if there is none. */
  push(name) {
    const message = this.#link(name).toServer.shift();
    if (message === undefined) return false;
    this.#server.handle(name, JSON.parse(message));
    return true;
  }

  /** Lets a client handle a message of the server. Returns false if there is none. */
  pull(name) {
    const link = this.#link(name);
    const message = link.toClient.shift();
    if (message === undefined) return false;
    link.client.handle(JSON.parse(message));
    return true;
  }

  cut(name) {
    Object.assign(this.#link(name), { toServer: [], toClient: [], isConnected: false });
  }

  reconnect(name) {
    const link = this.#link(name);
    if (link.isConnected) throw new Error(`\`${name}\` is connected`);
    link.isConnected = true;
    link.client.sayHello();
  }

  sync() {
    for (let moved = true; moved; ) {
      moved = false;
      for (const name of this.#links.keys()) {
        while (this.push(name)) moved = true;
        while (this.pull(name)) moved = true;
      }
    }
  }

  #link(name) {
    const link = this.#links.get(name);
    if (link === undefined) throw new Error(`\`${name}\` hasn't joined`);
    return link;
  }
}
