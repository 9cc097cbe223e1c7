// Values of the rule language and the operations on them.
#pragma once

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace rules {

using Value = std::variant<std::int64_t, double, bool, std::string>;

// An operation that has no result. The caller adds the position.
struct OperationError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

enum class Unary { neg, not_ };
enum class Binary { add, sub, mul, div, rem, eq, ne, lt, le, gt, ge };

struct Builtin {
  std::string_view name;
  std::size_t arity;
  Value (*call)(const std::vector<Value>& arguments);
};

Value operate(Unary op, const Value& operand);
Value operate(Binary op, const Value& left, const Value& right);
// Returns the builtin function of this name, or null.
const Builtin* find_builtin(std::string_view name);
// Throws an `OperationError` with the message `WHAT is not a bool` for other values.
bool require_bool(const Value& value, const std::string& what);

// How `print` shows a value.
std::string to_text(const Value& value);
// Reads what `to_text` writes for floats.
std::optional<double> parse_float(std::string_view text);
std::optional<std::int64_t> parse_int(std::string_view text);

}  // namespace rules
