// Questions about snapshots.
#pragma once

#include <optional>
#include <vector>

#include "snapshot.hpp"

namespace heap {

// Marks the nodes that can be reached from the roots. A removed node counts as not there.
std::vector<bool> reachable(const Snapshot& snapshot, std::optional<std::size_t> removed = std::nullopt);

// Total size of the nodes that can only be reached through a node, and the node itself; 0 for nodes that can't be reached.
std::vector<std::uint64_t> retained_sizes(const Snapshot& snapshot);

// A shortest path from a root to a node, or nothing.
std::vector<std::size_t> path_to(const Snapshot& snapshot, std::size_t target);

}  // namespace heap
