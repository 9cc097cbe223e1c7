/** Escapes a text for HTML. */
export function escapeHtml(text) {
  return String(text).replace("<", "&lt;").replace(">", "&gt;").replace("&", "&amp;");
}
