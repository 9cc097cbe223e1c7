import { newToken, refuse, run } from "./lib/simulator.js";

run({
  list({ state, args, options, attempt }) {
    if (args[0] !== state.environment) refuse(69, `there is no environment ${args[0]}`);
    state.cursors ??= {};
    const from = options.cursor === undefined ? 0 : state.cursors[options.cursor];
    if (from === undefined) refuse(65, "the cursor is unknown");
    attempt();
    const names = Object.keys(state.nodes).reverse();
    const to = from + state.page_size;
    const nodes = names.slice(from, to).map((name) => {
      const { service, version } = state.nodes[name];
      return { name, service, version };
    });
    let next = null;
    if (to < names.length) {
      next = newToken();
      state.cursors[next] = to;
    }
    return { nodes, next };
  },
});
