// Words and numbers of commands and files.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace scene {

// Splits at single spaces.
std::vector<std::string> split_words(std::string_view line);
// One to 32 characters out of `a-z`, `0-9`, `_`, `-`, `.`.
bool is_word(std::string_view text);
// A decimal 64-bit number: `0`, or an optional `-` and digits without leading zeros.
std::optional<std::int64_t> parse_value(std::string_view text);

}  // namespace scene
