#include "handle.hpp"

#include <charconv>

namespace scene {

namespace {

std::optional<std::uint32_t> parse_number(std::string_view text, std::uint32_t max) {
  if (text.empty() || (text[0] == '0' && text.size() > 1)) return std::nullopt;
  std::uint32_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number > max) return std::nullopt;
  return number;
}

}  // namespace

std::string to_text(Handle handle) {
  return "e" + std::to_string(handle.index) + "." + std::to_string(handle.generation);
}

std::optional<Handle> parse_handle(std::string_view text) {
  const auto dot = text.find('.');
  if (text.empty() || text[0] != 'e' || dot == std::string_view::npos) return std::nullopt;
  const auto index = parse_number(text.substr(1, dot - 1), INDEX_MAX);
  const auto generation = parse_number(text.substr(dot + 1), GENERATION_MAX);
  if (!index || !generation || *generation == 0) return std::nullopt;
  return Handle{*index, *generation};
}

}  // namespace scene
