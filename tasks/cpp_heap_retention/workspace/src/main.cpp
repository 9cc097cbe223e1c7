// heap stats FILE | retained FILE [--top N] | path FILE ID
#include <algorithm>
#include <fstream>
#include <iostream>
#include <numeric>

#include "analysis.hpp"

namespace {

constexpr int REFUSED = 2;

int usage() {
  std::cerr << "usage: heap stats FILE\n"
               "       heap retained FILE [--top N]\n"
               "       heap path FILE ID\n";
  return REFUSED;
}

int stats(const heap::Snapshot& snapshot) {
  const std::vector<bool> marks = heap::reachable(snapshot);
  std::uint64_t bytes = 0, reachable_bytes = 0;
  for (std::size_t i = 0; i < marks.size(); ++i) {
    bytes += snapshot.nodes[i].size;
    if (marks[i]) reachable_bytes += snapshot.nodes[i].size;
  }
  std::cout << "nodes " << snapshot.nodes.size() << "\nedges " << snapshot.edges.size() << "\nroots " << snapshot.roots.size() << "\nreachable "
            << std::count(marks.begin(), marks.end(), true) << "\nbytes " << bytes << "\nreachable bytes " << reachable_bytes << "\n";
  return 0;
}

int retained(const heap::Snapshot& snapshot, std::size_t top) {
  const std::vector<bool> marks = heap::reachable(snapshot);
  const std::vector<std::uint64_t> sizes = heap::retained_sizes(snapshot);
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (marks[i]) order.push_back(i);
  }
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return sizes[a] != sizes[b] ? sizes[a] > sizes[b] : snapshot.nodes[a].id < snapshot.nodes[b].id;
  });
  order.resize(std::min(order.size(), top));
  for (const std::size_t node : order) {
    std::cout << heap::format_id(snapshot.nodes[node].id) << " " << snapshot.nodes[node].size << " " << sizes[node] << " " << snapshot.nodes[node].type << "\n";
  }
  return 0;
}

int path(const heap::Snapshot& snapshot, std::uint64_t id) {
  const auto target = std::find_if(snapshot.nodes.begin(), snapshot.nodes.end(), [&](const heap::Node& node) { return node.id == id; });
  if (target == snapshot.nodes.end()) {
    std::cerr << "unknown node " << heap::format_id(id) << "\n";
    return REFUSED;
  }
  const auto nodes = heap::path_to(snapshot, target - snapshot.nodes.begin());
  if (nodes.empty()) std::cout << "unreachable\n";
  for (const std::size_t node : nodes) std::cout << heap::format_id(snapshot.nodes[node].id) << " " << snapshot.nodes[node].type << "\n";
  return 0;
}

bool parse_count(const std::string& text, std::size_t& count) {
  if (text.empty() || text.size() > 9 || text.find_first_not_of("0123456789") != std::string::npos) return false;
  count = std::stoul(text);
  return true;
}

int run(const std::vector<std::string>& words) {
  if (words.size() < 2) return usage();
  std::size_t top = static_cast<std::size_t>(-1);
  std::uint64_t id = 0;
  const bool is_stats = words[0] == "stats" && words.size() == 2;
  const bool is_retained = words[0] == "retained" && (words.size() == 2 || (words.size() == 4 && words[2] == "--top" && parse_count(words[3], top)));
  const bool is_path = words[0] == "path" && words.size() == 3 && heap::parse_id(words[2], id);
  if (!is_stats && !is_retained && !is_path) return usage();

  std::ifstream file(words[1]);
  if (!file) {
    std::cerr << "can't read `" << words[1] << "`\n";
    return REFUSED;
  }
  try {
    const heap::Snapshot snapshot = heap::read_snapshot(file);
    return is_stats ? stats(snapshot) : is_retained ? retained(snapshot, top) : path(snapshot, id);
  } catch (const heap::FormatError& error) {
    std::cerr << words[1] << ":" << error.line << ": " << error.what() << "\n";
    return REFUSED;
  }
}

}  // namespace

int main(int argc, char** argv) { return run({argv + 1, argv + argc}); }
