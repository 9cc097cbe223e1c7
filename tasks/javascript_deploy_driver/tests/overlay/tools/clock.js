import { refuse, run } from "./lib/simulator.js";

run({
  wait({ args }) {
    if (!/^[0-9]+$/.test(args[0] ?? "")) refuse(64, "seconds are missing");
    return {};
  },
});
