#include "words.hpp"

#include <algorithm>
#include <charconv>

namespace scene {

std::vector<std::string> split_words(std::string_view line) {
  std::vector<std::string> words;
  while (true) {
    const auto space = line.find(' ');
    words.emplace_back(line.substr(0, space));
    if (space == std::string_view::npos) return words;
    line.remove_prefix(space + 1);
  }
}

bool is_word(std::string_view text) {
  auto is_allowed = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-' || c == '.'; };
  return !text.empty() && text.size() <= 32 && std::all_of(text.begin(), text.end(), is_allowed);
}

std::optional<std::int64_t> parse_value(std::string_view text) {
  if (text.size() > 1 && text[0] == '0') return std::nullopt;
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace scene
