// Heap snapshots and their text format.
#pragma once

#include <cstdint>
#include <istream>
#include <stdexcept>
#include <string>
#include <vector>

namespace heap {

struct Node {
  std::uint64_t id = 0;
  std::uint64_t size = 0;
  std::string type;
};

// Indexes of nodes.
struct Edge {
  std::size_t from = 0;
  std::size_t to = 0;
};

struct Snapshot {
  std::vector<Node> nodes;
  std::vector<Edge> edges;
  std::vector<std::size_t> roots;
};

// An error in a line of a file.
struct FormatError : std::runtime_error {
  FormatError(std::size_t line, const std::string& message) : std::runtime_error(message), line(line) {}
  std::size_t line;
};

Snapshot read_snapshot(std::istream& in);

// Reads `0x` and 1 to 16 hexadecimal digits.
bool parse_id(const std::string& text, std::uint64_t& id);
std::string format_id(std::uint64_t id);

}  // namespace heap
