// Answers requests for src/signup.js: a JSON object per line.
import { createInterface } from "node:readline";
import { initialState, reduce, render, restoreDraft, saveDraft, title, validate } from "./src/signup.js";

function frozen(value) {
  if (typeof value === "object" && value !== null) {
    Object.values(value).forEach(frozen);
    Object.freeze(value);
  }
  return value;
}

const operations = {
  initial: ({ today }) => initialState(today),
  reduce: ({ state, event }) => reduce(frozen(state), frozen(event)),
  render: ({ state }) => render(frozen(state)),
  title: ({ state }) => title(frozen(state)),
  save: ({ state }) => saveDraft(frozen(state)),
  restore: ({ text, today }) => restoreDraft(text, today),
  validate: ({ values, today }) => validate(frozen(values), today),
};

for await (const line of createInterface({ input: process.stdin })) {
  const request = JSON.parse(line);
  let answer;
  try {
    answer = { result: operations[request.op](request) };
  } catch (error) {
    answer = { error: "exception", message: String(error) };
  }
  process.stdout.write(JSON.stringify(answer) + "\n");
}
