import { fields, steps } from "./fields.js";

/** Returns the state of a form that wasn't touched yet. `today` is a date like `2026-03-01`. */
export function initialState(today) {
  const values = {};
  for (const [name, { kind }] of Object.entries(fields)) {
    values[name] = kind === "checkboxes" || kind === "rows" ? [] : kind === "checkbox" ? false : "";
  }
  return { today, step: 0, values, next_key: 1, errors: [], focus: null, payload: null };
}

/** Returns the state after an event. */
export function reduce(state, event) {
  if (event.type === "change") state.values[event.name] = event.value;
  if (event.type === "next") state.payload = state.values;
  return state;
}

/** Returns the title of the page. */
export function title(state) {
  return "Join Fernhill";
}

/** Returns the markup of the form. */
export function render(state) {
  const names = steps.flatMap((step) => step.fields);
  const inputs = names.map((name) => `<input name="${name}" placeholder="${fields[name].label}" value="${state.values[name]}">`);
  return `<form id="signup">${inputs.join("\n")}<button>Create account</button></form>`;
}
