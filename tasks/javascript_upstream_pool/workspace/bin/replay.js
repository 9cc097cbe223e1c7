import { readFileSync } from "node:fs";

import { VirtualClock } from "../src/clock.js";
import { Gateway } from "../src/gateway.js";
import { SimulatedUpstream } from "../src/simulated.js";

function fail(message) {
  process.stderr.write(`replay: ${message}\n`);
  process.exit(2);
}

function readTrace(path) {
  try {
    return JSON.parse(readFileSync(path, "utf8"));
  } catch (error) {
    return fail(`can't read \`${path}\`: ${error.message}`);
  }
}

async function replay(trace) {
  const clock = new VirtualClock();
  const upstream = new SimulatedUpstream({ clock, ...trace.upstream });
  const gateway = new Gateway({ connect: upstream.connector(), clock, ...trace.pool });
  const counts = { ok: 0, failed: 0 };
  let active = 0;

  const run = async ({ atMs, key, tenant = "default" }) => {
    active += 1;
    let outcome;
    try {
      outcome = await gateway.fetch(key, { tenant });
      counts.ok += 1;
    } catch (error) {
      outcome = error.name;
      counts.failed += 1;
    }
    active -= 1;
    process.stdout.write(`${clock.now()}\t${tenant}\t${key}\t${clock.now() - atMs}ms\t${outcome}\n`);
  };

  const requests = [...trace.requests].sort((a, b) => a.atMs - b.atMs);
  for (const request of requests) {
    await clock.advance(request.atMs - clock.now());
    run(request);
  }
  while (active > 0) await clock.advance(1);
  const endMs = clock.now();
  await gateway.close();
  process.stdout.write(`requests=${requests.length} ok=${counts.ok} failed=${counts.failed} end=${endMs}ms\n`);
}

const [path] = process.argv.slice(2);
if (path === undefined) fail("usage: node bin/replay.js TRACE");
await replay(readTrace(path));
