// Names of entities: slot index and generation.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace scene {

constexpr std::uint32_t GENERATION_MAX = 15;
constexpr std::uint32_t INDEX_MAX = 999'999;

// Generation 0 names no entity; the default handle stands for the root.
struct Handle {
  std::uint32_t index = 0;
  std::uint32_t generation = 0;

  auto operator<=>(const Handle&) const = default;
  bool is_root() const { return generation == 0; }
};

std::string to_text(Handle handle);
// Reads `e<index>.<generation>`, without leading zeros or signs.
std::optional<Handle> parse_handle(std::string_view text);

}  // namespace scene
