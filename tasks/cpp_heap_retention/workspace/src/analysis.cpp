#include "analysis.hpp"

#include <algorithm>

namespace heap {

namespace {

void visit(const Snapshot& snapshot, std::size_t node, std::vector<bool>& marks) {
  if (marks[node]) return;
  marks[node] = true;
  for (const Edge& edge : snapshot.edges) {
    if (edge.from == node) visit(snapshot, edge.to, marks);
  }
}

}  // namespace

std::vector<bool> reachable(const Snapshot& snapshot, std::optional<std::size_t> removed) {
  std::vector<bool> marks(snapshot.nodes.size());
  if (removed) marks[*removed] = true;
  for (const std::size_t root : snapshot.roots) visit(snapshot, root, marks);
  if (removed) marks[*removed] = false;
  return marks;
}

std::vector<std::uint64_t> retained_sizes(const Snapshot& snapshot) {
  const std::vector<bool> before = reachable(snapshot);
  std::vector<std::uint64_t> sizes(snapshot.nodes.size());
  for (std::size_t node = 0; node < sizes.size(); ++node) {
    if (!before[node]) continue;
    const std::vector<bool> after = reachable(snapshot, node);
    for (std::size_t other = 0; other < sizes.size(); ++other) {
      if (before[other] && !after[other]) sizes[node] += snapshot.nodes[other].size;
    }
  }
  return sizes;
}

std::vector<std::size_t> path_to(const Snapshot& snapshot, std::size_t target) {
  std::vector<bool> seen(snapshot.nodes.size());
  std::vector<std::vector<std::size_t>> paths;
  for (const std::size_t root : snapshot.roots) paths.push_back({root});
  while (!paths.empty()) {
    std::vector<std::vector<std::size_t>> longer;
    for (const auto& path : paths) {
      if (path.back() == target) return path;
      if (seen[path.back()]) continue;
      seen[path.back()] = true;
      for (const Edge& edge : snapshot.edges) {
        if (edge.from != path.back()) continue;
        longer.push_back(path);
        longer.back().push_back(edge.to);
      }
    }
    paths = std::move(longer);
  }
  return {};
}

}  // namespace heap
