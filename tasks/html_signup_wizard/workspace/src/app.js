// Connects the form with the page. Everything that doesn't need a browser is in signup.js.
import { fields } from "./fields.js";
import { reduce, render, restoreDraft, saveDraft, title } from "./signup.js";

const DRAFT = "signup-draft";

const app = document.getElementById("app");
let state = restoreDraft(localStorage.getItem(DRAFT), new Date().toISOString().slice(0, 10));

function show() {
  app.innerHTML = render(state);
  document.title = title(state);
  const form = app.querySelector("form");
  if (form) form.noValidate = true;
  if (state.focus) document.getElementById(state.focus)?.focus();
}

function keepDraft() {
  const draft = saveDraft(state);
  if (draft === null) localStorage.removeItem(DRAFT);
  else localStorage.setItem(DRAFT, draft);
}

function dispatch(event) {
  state = reduce(state, event);
  show();
  keepDraft();
}

app.addEventListener("change", ({ target }) => {
  const kind = fields[target.name]?.kind ?? (target.name.includes(".") ? "input" : null);
  if (!kind) return;
  let { value } = target;
  if (kind === "checkbox") value = target.checked;
  if (kind === "checkboxes") value = [...app.querySelectorAll(`[name="${target.name}"]:checked`)].map((box) => box.value);
  const needsRender = ["radios", "select"].includes(kind);
  state = reduce(state, { type: "change", name: target.name, value });
  keepDraft();
  if (needsRender) {
    const { id } = target;
    show();
    document.getElementById(id)?.focus();
  }
});

app.addEventListener("click", ({ target }) => {
  const { add, remove } = target.closest("button")?.dataset ?? {};
  if (add) dispatch({ type: "add", name: add });
  if (remove) dispatch({ type: "remove", name: remove });
});

app.addEventListener("submit", async (event) => {
  event.preventDefault();
  dispatch({ type: event.submitter?.value === "back" ? "back" : "next" });
  if (!state.payload) return;
  const response = await fetch("/signup", { method: "POST", body: JSON.stringify(state.payload) });
  if (!response.ok) dispatch({ type: "rejected", errors: (await response.json()).errors });
});

show();
