// Common part of the simulators: state, virtual time, faults, and the log of calls. See docs/PROTOCOL.md.
import { appendFileSync, existsSync, readFileSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";

const TOKEN_LENGTH = 20;
const KEY = /^[A-Za-z0-9-]{1,64}$/;
const STARTS = ["-", " ", "'", '"', "$(", "\\", "="];

/** Ends a call with an exit status other than 0. */
class Failure extends Error {
  constructor(status, message, answer = {}) {
    super(message);
    this.status = status;
    this.answer = answer;
  }
}

export function refuse(status, message) {
  throw new Failure(status, message);
}

function randomInt(limit) {
  return Math.floor(Math.random() * limit);
}

/** Makes a token of random printable characters. */
export function newToken() {
  const letters = Array.from({ length: TOKEN_LENGTH }, () => String.fromCharCode(32 + randomInt(95)));
  return STARTS[randomInt(STARTS.length)] + letters.join("") + "!";
}

/** Returns a node of the fleet. */
export function knownNode(state, name) {
  if (!Object.hasOwn(state.nodes, name ?? "")) refuse(69, `there is no node ${name}`);
  return state.nodes[name];
}

/** Refuses a call whose lease can't be used. */
export function checkLease({ state, options, began }) {
  if (!state.lease || state.lease.token !== options.lease || began >= state.lease.expires) {
    refuse(77, "the lease is unknown or has expired");
  }
}

/**
 * Runs a tool. `commands` maps names to functions that check a call, call `attempt()` (which throws if a failure is to be
 * simulated, and otherwise returns the fault's other properties), and then return the answer.
 */
export function run(commands) {
  const folder = process.env.FLEET_STATE;
  const tool = basename(process.argv[1], ".js");
  const [command, ...rest] = process.argv.slice(2);
  const args = rest.filter((arg) => !arg.startsWith("--"));
  const options = {};
  for (const option of rest.filter((arg) => arg.startsWith("--"))) {
    const [, name, value] = /^--([a-z]+)=(.*)$/s.exec(option) ?? [];
    if (name) options[name] = value;
  }
  const call = [tool, command, ...args].join(" ");

  const file = join(folder, "fleet.json");
  const state = { clock: 0, faultsUsed: {}, keys: {}, crashed: {}, ...JSON.parse(readFileSync(file, "utf8")) };
  const save = () => writeFileSync(file, JSON.stringify(state, null, 1));
  const { key = "" } = options;
  const crashes = (when) => {
    if (Object.hasOwn(state.keys, key) || Object.hasOwn(state.crashed, key)) return false;
    const index = readFaults(folder).findIndex((one) => one.crash === when && ["*", call].includes(one.call));
    if (index < 0) return false;
    state.crashed[key] = true;
    const { after = 0, times = 1 } = readFaults(folder)[index];
    const used = state.faultsUsed[index] ?? 0;
    state.faultsUsed[index] = used + 1;
    return used >= after && used < after + times;
  };
  if (crashes("before")) {
    save();
    process.kill(process.ppid, "SIGTERM");
    return;
  }
  const began = state.clock;
  const isReplay = Object.hasOwn(state.keys, key);
  state.clock += tool === "clock" && !isReplay ? Math.max(0, Number(args[0]) || 0) : 1;

  process.stdout.write(`${call}: started\n{"progress": 50}\n`);
  let status = 0;
  let answer;
  try {
    if (!Object.hasOwn(commands, command ?? "")) refuse(64, `unknown command ${command}`);
    if (!KEY.test(key)) refuse(64, "the key is missing or malformed");
    if (isReplay) return replay(state, { call, options, save, folder });
    if (tool !== "clock" && began < (state.notBefore ?? 0)) refuse(65, "the call came too early");
    answer = commands[command]({ state, args, options, began, attempt: () => attempt(state, call, folder) });
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    ({ status } = error);
    answer = { error: error.message, ...error.answer };
  }
  if (status === 75) state.notBefore = state.clock + answer.retry_after;
  const isLost = crashes("after");
  if (KEY.test(key) && !isReplay) state.keys[key] = { call, options, status, answer };
  answer = { ...answer, now: state.clock };
  save();
  appendFileSync(join(folder, "calls.jsonl"), JSON.stringify({ call, options, status, answer }) + "\n");
  if (isLost) {
    process.kill(process.ppid, "SIGTERM");
    return;
  }
  process.stdout.write(JSON.stringify(answer) + "\n");
  process.exitCode = status;
}

/** Answers a call that was made before. */
function replay(state, { call, options, save, folder }) {
  const known = state.keys[options.key];
  const isSame = known.call === call && JSON.stringify(sorted(known.options)) === JSON.stringify(sorted(options));
  if (!isSame) refuse(65, "the key belongs to another call");
  const answer = { ...known.answer, replayed: true, now: state.clock };
  save();
  const entry = { call, options, status: known.status, answer };
  appendFileSync(join(folder, "calls.jsonl"), JSON.stringify(entry) + "\n");
  process.stdout.write(JSON.stringify(answer) + "\n");
  process.exitCode = known.status;
}

function sorted(options) {
  return Object.entries(options).sort(([one], [other]) => (one < other ? -1 : 1));
}

function readFaults(folder) {
  const file = join(folder, "faults.json");
  return existsSync(file) ? JSON.parse(readFileSync(file, "utf8")) : [];
}

function attempt(state, call, folder) {
  const faults = readFaults(folder);
  for (const [index, fault] of faults.entries()) {
    if (fault.call !== call || fault.crash) continue;
    const used = state.faultsUsed[index] ?? 0;
    if (used >= (fault.after ?? 0) + (fault.times ?? 1)) continue;
    state.faultsUsed[index] = used + 1;
    if (used < (fault.after ?? 0)) continue;
    if (!fault.exit) return fault;
    const answer = fault.exit === 75 ? { retry_after: fault.retry_after ?? 3 } : {};
    if (fault.exit === 75 && fault.operation) answer.operation = newToken();
    throw new Failure(fault.exit, "simulated failure", answer);
  }
  return {};
}
