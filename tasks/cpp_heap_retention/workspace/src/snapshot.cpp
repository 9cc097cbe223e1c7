#include "snapshot.hpp"

#include <algorithm>
#include <charconv>
#include <map>
#include <sstream>

namespace heap {

namespace {

std::vector<std::string> split(const std::string& line) {
  std::vector<std::string> fields;
  std::string field;
  std::istringstream stream(line);
  while (std::getline(stream, field, ' ')) fields.push_back(field);
  return fields;
}

bool is_bare(const std::string& text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '.' || c == '$';
  });
}

// Reads snapshots of version 1.
class Reader {
 public:
  Snapshot read(std::istream& in) {
    std::string line;
    ++line_;
    if (!std::getline(in, line) || line != "heap 1") throw FormatError(line_, "expected `heap 1`");
    while (std::getline(in, line)) {
      ++line_;
      read_line(split(line));
    }
    for (const Reference& edge : edges_) snapshot_.edges.push_back({resolve(edge.line, edge.from), resolve(edge.line, edge.to)});
    for (const Reference& root : roots_) snapshot_.roots.push_back(resolve(root.line, root.to));
    return std::move(snapshot_);
  }

 private:
  // Nodes may be defined after the lines that name them.
  struct Reference {
    std::size_t line;
    std::uint64_t from;
    std::uint64_t to;
  };

  void read_line(const std::vector<std::string>& fields) {
    if (fields.size() == 4 && fields[0] == "node" && is_bare(fields[3])) {
      const Node node{id(fields[1]), size(fields[2]), fields[3]};
      if (!indexes_.emplace(node.id, snapshot_.nodes.size()).second) {
        throw FormatError(line_, "node " + format_id(node.id) + " is defined twice");
      }
      snapshot_.nodes.push_back(node);
    } else if (fields.size() == 3 && fields[0] == "edge") {
      edges_.push_back({line_, id(fields[1]), id(fields[2])});
    } else if (fields.size() == 2 && fields[0] == "root") {
      roots_.push_back({line_, 0, id(fields[1])});
    } else {
      throw FormatError(line_, "malformed line");
    }
  }

  std::uint64_t id(const std::string& text) const {
    std::uint64_t id = 0;
    if (!parse_id(text, id)) throw FormatError(line_, "malformed line");
    return id;
  }

  std::uint64_t size(const std::string& text) const {
    std::uint64_t size = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), size);
    if (error == std::errc::invalid_argument || end != text.data() + text.size()) throw FormatError(line_, "malformed line");
    if (error != std::errc()) throw FormatError(line_, "size is out of range");
    return size;
  }

  std::size_t resolve(std::size_t line, std::uint64_t id) const {
    const auto found = indexes_.find(id);
    if (found == indexes_.end()) throw FormatError(line, "unknown node " + format_id(id));
    return found->second;
  }

  std::size_t line_ = 0;
  Snapshot snapshot_;
  std::map<std::uint64_t, std::size_t> indexes_;
  std::vector<Reference> edges_;
  std::vector<Reference> roots_;
};

}  // namespace

Snapshot read_snapshot(std::istream& in) { return Reader().read(in); }

bool parse_id(const std::string& text, std::uint64_t& id) {
  if (text.size() < 3 || text.size() > 18 || text[0] != '0' || text[1] != 'x') return false;
  const auto [end, error] = std::from_chars(text.data() + 2, text.data() + text.size(), id, 16);
  return error == std::errc() && end == text.data() + text.size();
}

std::string format_id(std::uint64_t id) {
  char buffer[16];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, id, 16).ptr;
  return "0x" + std::string(buffer, end);
}

}  // namespace heap
