// Connects the form with the page. Everything that doesn't need a browser is in signup.js.
import { fields } from "./fields.js";
import { initialState, reduce, render, title } from "./signup.js";

const app = document.getElementById("app");
let state = initialState(new Date().toISOString().slice(0, 10));

function show() {
  app.innerHTML = render(state);
  document.title = title(state);
  const form = app.querySelector("form");
  if (form) form.noValidate = true;
  if (state.focus) document.getElementById(state.focus)?.focus();
}

function dispatch(event) {
  state = reduce(state, event);
  show();
}

app.addEventListener("change", ({ target }) => {
  const { kind } = fields[target.name] ?? {};
  if (!kind) return;
  let { value } = target;
  if (kind === "checkbox") value = target.checked;
  if (kind === "checkboxes") value = [...app.querySelectorAll(`[name="${target.name}"]:checked`)].map((box) => box.value);
  const needsRender = ["radios", "select"].includes(kind);
  state = reduce(state, { type: "change", name: target.name, value });
  if (needsRender) {
    const { id } = target;
    show();
    document.getElementById(id)?.focus();
  }
});

app.addEventListener("submit", async (event) => {
  event.preventDefault();
  dispatch({ type: event.submitter?.value === "back" ? "back" : "next" });
  if (!state.payload) return;
  const response = await fetch("/signup", { method: "POST", body: JSON.stringify(state.payload) });
  if (!response.ok) dispatch({ type: "rejected", errors: (await response.json()).errors });
});

show();
