import { checkLease, newToken, refuse, run } from "./lib/simulator.js";

const LEASE_SECONDS = 30;

function granted(state) {
  state.lease = { token: newToken(), expires: state.clock + (state.lease_seconds ?? LEASE_SECONDS) };
  return { lease: state.lease.token, expires: state.lease.expires };
}

run({
  acquire({ state, args, began, attempt }) {
    if (args[0] !== state.environment) refuse(69, `there is no environment ${args[0]}`);
    attempt();
    if (state.lease && began < state.lease.expires) refuse(69, "the lease was acquired already");
    return granted(state);
  },

  renew(call) {
    checkLease(call);
    call.attempt();
    return granted(call.state);
  },

  release({ state, options, attempt }) {
    if (!state.lease || state.lease.token !== options.lease) refuse(65, "the lease is unknown");
    attempt();
    state.lease = null;
    return {};
  },
});
