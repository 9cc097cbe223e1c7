import { readFileSync } from "node:fs";

/** A plan that can't be carried out. */
export class PlanError extends Error {}

/** Reads a plan and checks it. Returns `{ environment, version, services }`, with services in the order to deploy them. */
export function loadPlan(path) {
  let plan;
  try {
    plan = JSON.parse(readFileSync(path, "utf8"));
  } catch (error) {
    throw new PlanError(`\`${path}\` can't be read: ${error.message}`);
  }
  for (const name of ["environment", "version"]) {
    if (typeof plan?.[name] !== "string" || !/^[A-Za-z0-9][\w.+-]*$/.test(plan[name])) {
      throw new PlanError(`\`${name}\` is missing or malformed`);
    }
  }
  if (!Array.isArray(plan.services)) throw new PlanError("`services` is not a list");
  return { environment: plan.environment, version: plan.version, services: ordered(plan.services.map(checkedService)) };
}

function checkedService({ name, needs = [], batch = 1 }) {
  if (typeof name !== "string" || !/^[a-z][a-z0-9-]*$/.test(name)) throw new PlanError(`\`${name}\` is not a service`);
  if (!Array.isArray(needs)) throw new PlanError(`the needs of \`${name}\` are not a list`);
  if (!Number.isInteger(batch) || batch < 1) throw new PlanError(`the batch of \`${name}\` is not a positive integer`);
  return { name, needs, batch };
}

function ordered(services) {
  const waiting = new Map();
  for (const service of services) {
    if (waiting.has(service.name)) throw new PlanError(`\`${service.name}\` is there twice`);
    waiting.set(service.name, service);
  }
  for (const { name, needs } of services) {
    for (const need of needs) if (!waiting.has(need)) throw new PlanError(`\`${name}\` needs \`${need}\`, which is missing`);
  }
  const order = [];
  while (waiting.size > 0) {
    const names = [...waiting.keys()].filter((name) => waiting.get(name).needs.every((need) => !waiting.has(need)));
    if (names.length === 0) throw new PlanError(`services need each other: ${[...waiting.keys()].join(", ")}`);
    const [first] = names.sort();
    order.push(waiting.get(first));
    waiting.delete(first);
  }
  return order;
}
