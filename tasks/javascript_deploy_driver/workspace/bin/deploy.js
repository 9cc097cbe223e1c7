#!/usr/bin/env node
import { PlanError, loadPlan } from "../src/plan.js";

function main(args) {
  const isDryRun = args.includes("--dry-run");
  const [path] = args.filter((arg) => !arg.startsWith("--"));
  if (!path) {
    process.stderr.write("usage: deploy [--dry-run] PLAN.json\n");
    return 2;
  }
  let plan;
  try {
    plan = loadPlan(path);
  } catch (error) {
    if (!(error instanceof PlanError)) throw error;
    process.stderr.write(`deploy: ${error.message}\n`);
    return 2;
  }
  if (isDryRun) {
    for (const { name } of plan.services) process.stdout.write(`${name}\n`);
    return 0;
  }
  process.stderr.write("deploy: only --dry-run works so far\n");
  return 1;
}

process.exitCode = main(process.argv.slice(2));
