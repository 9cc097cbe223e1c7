import { checkLease, knownNode, newToken, refuse, run } from "./lib/simulator.js";

function checkDrained(node, options) {
  if (!node.receipt || node.receipt !== options.receipt) refuse(65, "the receipt is not that of the node's drain");
}

function checkTicket(node, options) {
  if (!node.ticket || node.ticket !== options.ticket) refuse(65, "the ticket is not that of the node's installation");
}

run({
  install(call) {
    const { state, args, options } = call;
    const node = knownNode(state, args[0]);
    const { operation } = node;
    if (operation !== options.operation) refuse(65, "the operation isn't the newest one");
    delete node.operation;
    if (!args[1]) refuse(64, "the version is missing");
    checkLease(call);
    checkDrained(node, options);
    try {
      call.attempt();
    } catch (failure) {
      if (failure.status === 75) node.operation = failure.answer.operation ?? operation;
      throw failure;
    }
    node.previous = node.version;
    node.version = args[1];
    node.ticket = newToken();
    return { ticket: node.ticket };
  },

  check({ state, args, options, attempt }) {
    const node = knownNode(state, args[0]);
    checkTicket(node, options);
    return { healthy: attempt().healthy ?? true };
  },

  rollback({ state, args, options, attempt }) {
    const node = knownNode(state, args[0]);
    checkTicket(node, options);
    checkDrained(node, options);
    attempt();
    node.version = node.previous;
    delete node.previous;
    delete node.ticket;
    return {};
  },

  abandon({ state, args, options, attempt }) {
    const node = knownNode(state, args[0]);
    if (!node.operation || node.operation !== options.operation) refuse(65, "the operation is unknown");
    attempt();
    delete node.operation;
    return {};
  },
});
