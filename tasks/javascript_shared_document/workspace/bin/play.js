import { readFileSync } from "node:fs";

import { Network } from "../src/network.js";

const TOKEN = /"(?:[^"\\]|\\.)*"|[^\s"]+/g;

class Player {
  #text = "";
  #network;

  play(words) {
    const [command, name, ...rest] = words;
    switch (command) {
      case "start":
        if (this.#network !== undefined) throw new Error("`start` comes too late");
        this.#text = text(name);
        return;
      case "join":
        if (!/^[A-Za-z][A-Za-z0-9]*$/.test(name ?? "") || name === "server") throw new Error(`bad name \`${name}\``);
        this.#net().join(name);
        return;
      case "type":
        this.#net().client(name).edit(number(rest[0]), 0, text(rest[1]));
        return;
      case "erase":
        this.#net().client(name).edit(number(rest[0]), number(rest[1]), "");
        return;
      case "replace":
        this.#net().client(name).edit(number(rest[0]), number(rest[1]), text(rest[2]));
        return;
      case "undo":
      case "redo":
        this.#net().client(name)[command]();
        return;
      case "push":
      case "pull":
      case "cut":
      case "reconnect":
        this.#net()[command](name);
        return;
      case "sync":
        this.#net().sync();
        return;
      case "show": {
        const owner = name === "server" ? this.#net().server : this.#net().client(name);
        process.stdout.write(`${name} ${JSON.stringify(owner.text)}\n`);
        return;
      }
      case "status": {
        const { revision, state } = this.#net().client(name);
        process.stdout.write(`${name} ${revision} ${state}\n`);
        return;
      }
      default:
        throw new Error(`unknown command \`${command}\``);
    }
  }

  #net() {
    this.#network ??= new Network(this.#text);
    return this.#network;
  }
}

function number(word) {
  if (!/^\d+$/.test(word ?? "")) throw new Error(`\`${word}\` is no number`);
  return Number(word);
}

function text(word) {
  if (!word?.startsWith('"')) throw new Error(`\`${word}\` is no text`);
  return JSON.parse(word);
}

const player = new Player();
const lines = readFileSync(process.argv[2] ?? 0, "utf8").split("\n");
for (const [index, line] of lines.entries()) {
  const words = line.trim().startsWith("#") ? [] : line.match(TOKEN) ?? [];
  if (words.length === 0) continue;
  try {
    player.play(words);
  } catch (error) {
    process.stderr.write(`play: line ${index + 1}: ${error.message}\n`);
    process.exit(1);
  }
}
