import { checkLease, knownNode, newToken, refuse, run } from "./lib/simulator.js";

run({
  drain(call) {
    const node = knownNode(call.state, call.args[0]);
    checkLease(call);
    if (node.receipt) refuse(69, "the node is drained already");
    call.attempt();
    node.receipt = newToken();
    return { receipt: node.receipt };
  },

  restore({ state, args, options, attempt }) {
    const node = knownNode(state, args[0]);
    if (!node.receipt || node.receipt !== options.receipt) refuse(65, "the receipt is not that of the node's drain");
    attempt();
    delete node.receipt;
    return {};
  },
});
