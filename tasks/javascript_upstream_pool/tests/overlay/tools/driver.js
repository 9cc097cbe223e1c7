// Runs a pool, a coalescer or a gateway for requests in JSON, one per line, and reports what happened since the last one.
import { getEventListeners } from "node:events";
import { createInterface } from "node:readline";

import { settle, VirtualClock } from "../src/clock.js";
import { Coalescer } from "../src/coalescer.js";
import { Gateway } from "../src/gateway.js";
import { Pool } from "../src/pool.js";

const clock = new VirtualClock();
let events = [];
const log = (text) => events.push(text);

let pool;
let coalescer;
let gateway;
let auto = {};
const controllers = new Map();
const connects = [];
const connections = new Map();
const leases = new Map();
const loads = [];
const requests = [];

function describe(error) {
  if (!(error instanceof Error)) return String(error);
  const cause = error.cause === undefined ? "" : `(${error.cause.name === "Error" ? error.cause.message : error.cause.name})`;
  return (error.name === "Error" ? error.message : error.name) + cause;
}

function deferred() {
  const parts = {};
  parts.promise = new Promise((resolve, reject) => Object.assign(parts, { resolve, reject }));
  return parts;
}

function makeConnection(id) {
  const closed = deferred();
  const connection = {
    id,
    request(key, { signal }) {
      const request = { key, id, signal, ...deferred() };
      requests.push(request);
      log(`request ${key} on ${id}`);
      signal.addEventListener("abort", () => log(`request ${key} aborted: ${describe(signal.reason)}`));
      if (auto.requestThrows) throw new Error("request threw");
      return request.promise;
    },
    close() {
      log(`close ${id}`);
      if (auto.closeThrows) throw new Error("close threw");
      return auto.close ? undefined : closed.promise;
    },
  };
  connections.set(id, { connection, closed });
  return connection;
}

function connect({ signal }) {
  const id = `c${connects.length + 1}`;
  const entry = { id, ...deferred() };
  connects.push(entry);
  log(`connect ${id}`);
  signal.addEventListener("abort", () => log(`connect ${id} aborted`));
  if (auto.connectThrows) throw new Error("connect threw");
  if (auto.connect) return Promise.resolve(makeConnection(id));
  return entry.promise;
}

function load(key, { tenant, signal }) {
  const entry = { key, ...deferred() };
  loads.push(entry);
  const number = loads.length;
  log(`load ${number} ${key} for ${tenant}`);
  signal.addEventListener("abort", () => log(`load ${number} aborted: ${describe(signal.reason)}`));
  if (auto.loadThrows) throw new Error("load threw");
  return entry.promise;
}

function signalOf(name) {
  if (name === undefined) return undefined;
  if (!controllers.has(name)) controllers.set(name, new AbortController());
  return controllers.get(name).signal;
}

function optionsOf({ tenant, signal, timeoutMs }) {
  const options = {};
  if (tenant !== undefined) options.tenant = tenant;
  if (signal !== undefined) options.signal = signalOf(signal);
  if (timeoutMs !== undefined) options.timeoutMs = timeoutMs;
  return options;
}

function report(name, promise) {
  promise.then(
    (value) => log(`${name} got ${value}`),
    (error) => log(`${name} failed: ${describe(error)}`),
  );
}

const operations = {
  pool: (options) => {
    ({ auto = {} } = options);
    pool = new Pool({ connect, clock, ...options.options });
  },
  coalescer: (options) => {
    ({ auto = {} } = options);
    coalescer = new Coalescer({ load, clock });
  },
  gateway: (options) => {
    ({ auto = {} } = options);
    gateway = new Gateway({ connect, clock, ...options.options });
  },
  auto: ({ auto: next }) => {
    auto = next;
  },
  acquire: (options) => {
    const { name, releases } = options;
    pool.acquire(optionsOf(options)).then(
      (lease) => {
        leases.set(name, lease);
        log(`${name} got ${lease.connection.id}`);
        lease.signal.addEventListener("abort", () => {
          log(`${name} revoked: ${describe(lease.signal.reason)}`);
          if (releases !== undefined) leases.get(releases).release();
        });
      },
      (error) => log(`${name} failed: ${describe(error)}`),
    );
  },
  release: ({ name, discard }) => leases.get(name).release(discard === undefined ? undefined : { discard }),
  abort: ({ signal, reason }) => {
    signalOf(signal);
    controllers.get(signal).abort(reason);
  },
  connected: ({ id }) => connects.find((entry) => entry.id === id).resolve(makeConnection(id)),
  refuse: ({ id, message = "refused" }) => connects.find((entry) => entry.id === id).reject(new Error(message)),
  closed: ({ id }) => connections.get(id).closed.resolve(),
  close_failed: ({ id }) => connections.get(id).closed.reject(new Error("close failed")),
  drain: ({ name, timeoutMs }) => {
    const draining = timeoutMs === undefined ? pool.drain() : pool.drain({ timeoutMs });
    draining.then(({ forced }) => log(`${name} drained, forced ${forced}`));
  },
  stats: () => (pool ?? gateway).stats(),
  get: (options) => report(options.name, coalescer.get(options.key, optionsOf(options))),
  get_after: (options) => {
    // Calls `get` again as soon as the first call has settled.
    const again = () => report(options.next, coalescer.get(options.key));
    coalescer.get(options.key).then(again, again);
  },
  loaded: ({ number, value }) => loads[number - 1].resolve(value),
  load_failed: ({ number, message }) => loads[number - 1].reject(new Error(message)),
  size: () => coalescer.size,
  fetch: (options) => report(options.name, gateway.fetch(options.key, optionsOf(options))),
  answer: ({ key, value }) => requests.filter((entry) => entry.key === key).at(-1).resolve(value),
  answer_failed: ({ key, message, reusable }) => {
    const error = Object.assign(new Error(message), reusable === undefined ? {} : { reusable });
    requests.filter((entry) => entry.key === key).at(-1).reject(error);
  },
  close: ({ name, timeoutMs }) => {
    const closing = timeoutMs === undefined ? gateway.close() : gateway.close({ timeoutMs });
    closing.then(({ forced }) => log(`${name} drained, forced ${forced}`));
  },
  timers: () => clock.timerCount,
  listeners: ({ signal }) => getEventListeners(signalOf(signal), "abort").length,
  advance: ({ ms }) => clock.advance(ms),
  batch: ({ steps }) => {
    for (const { op, ...rest } of steps) operations[op](rest);
  },
  nothing: () => {},
};

for await (const line of createInterface({ input: process.stdin })) {
  const { op, ...rest } = JSON.parse(line);
  const value = await operations[op](rest);
  for (let i = 0; i < 3; i += 1) await settle();
  const happened = events;
  events = [];
  process.stdout.write(`${JSON.stringify({ result: { value: value ?? null, events: happened } })}\n`);
}
