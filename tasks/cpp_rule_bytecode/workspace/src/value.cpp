#include "value.hpp"

#include <charconv>
#include <cmath>
#include <limits>

namespace rules {

namespace {

constexpr double TWO_63 = 9223372036854775808.0;

const char* symbol(Binary op) {
  static const char* symbols[] = {"+", "-", "*", "/", "%", "==", "!=", "<", "<=", ">", ">="};
  return symbols[static_cast<int>(op)];
}

const char* type_name(const Value& value) {
  static const char* names[] = {"int", "float", "bool", "text"};
  return names[value.index()];
}

bool is_number(const Value& value) { return value.index() < 2; }

double as_double(const Value& value) {
  return std::holds_alternative<double>(value) ? std::get<double>(value) : static_cast<double>(std::get<std::int64_t>(value));
}

Value int_operation(Binary op, std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  bool overflows = false;
  switch (op) {
    case Binary::add: overflows = __builtin_add_overflow(a, b, &result); break;
    case Binary::sub: overflows = __builtin_sub_overflow(a, b, &result); break;
    case Binary::mul: overflows = __builtin_mul_overflow(a, b, &result); break;
    default:
      if (b == 0) throw OperationError("division by zero");
      if (b == -1) {
        // The hardware can't divide the smallest number by -1.
        if (op == Binary::rem) return std::int64_t{0};
        overflows = __builtin_sub_overflow(std::int64_t{0}, a, &result);
      } else {
        result = op == Binary::div ? a / b : a % b;
      }
  }
  if (overflows) throw OperationError(std::string("overflow in ") + symbol(op));
  return result;
}

Value float_operation(Binary op, double a, double b) {
  switch (op) {
    case Binary::add: return a + b;
    case Binary::sub: return a - b;
    case Binary::mul: return a * b;
    case Binary::div: return a / b;
    default: return std::fmod(a, b);
  }
}

// Compares exactly: -1, 0, 1, or nothing for NaN.
std::optional<int> compare(std::int64_t a, double b) {
  if (std::isnan(b)) return std::nullopt;
  if (b >= TWO_63) return -1;
  if (b < -TWO_63) return 1;
  const auto whole = static_cast<std::int64_t>(b);
  if (a != whole) return a < whole ? -1 : 1;
  const double rest = b - static_cast<double>(whole);
  return rest > 0 ? -1 : rest < 0 ? 1 : 0;
}

template <class T>
std::optional<int> compare(const T& a, const T& b) {
  return a < b ? std::optional(-1) : a > b ? std::optional(1) : a == b ? std::optional(0) : std::nullopt;
}

std::optional<int> compare_values(const Value& a, const Value& b) {
  if (is_number(a) && is_number(b) && a.index() != b.index()) {
    if (std::holds_alternative<std::int64_t>(a)) return compare(std::get<std::int64_t>(a), std::get<double>(b));
    const auto reversed = compare(std::get<std::int64_t>(b), std::get<double>(a));
    return reversed ? std::optional(-*reversed) : std::nullopt;
  }
  return std::visit([&](const auto& left) { return compare(left, std::get<std::decay_t<decltype(left)>>(b)); }, a);
}

Value builtin_abs(const std::vector<Value>& args) {
  if (std::holds_alternative<double>(args[0])) return std::fabs(std::get<double>(args[0]));
  if (!is_number(args[0])) throw OperationError(std::string("abs of ") + type_name(args[0]));
  const auto value = std::get<std::int64_t>(args[0]);
  if (value == std::numeric_limits<std::int64_t>::min()) throw OperationError("overflow in abs");
  return value < 0 ? -value : value;
}

Value smaller_or_larger(const std::vector<Value>& args, Binary op, const char* name) {
  if (!is_number(args[0]) || !is_number(args[1])) {
    throw OperationError(std::string(name) + " of " + type_name(args[0]) + " and " + type_name(args[1]));
  }
  return std::get<bool>(operate(op, args[1], args[0])) ? args[1] : args[0];
}

Value builtin_min(const std::vector<Value>& args) { return smaller_or_larger(args, Binary::lt, "min"); }
Value builtin_max(const std::vector<Value>& args) { return smaller_or_larger(args, Binary::gt, "max"); }

Value builtin_int(const std::vector<Value>& args) {
  if (std::holds_alternative<std::int64_t>(args[0])) return args[0];
  if (!std::holds_alternative<double>(args[0])) throw OperationError(std::string("int of ") + type_name(args[0]));
  const double value = std::trunc(std::get<double>(args[0]));
  if (!(value >= -TWO_63 && value < TWO_63)) throw OperationError("overflow in int");
  return static_cast<std::int64_t>(value);
}

Value builtin_float(const std::vector<Value>& args) {
  if (!is_number(args[0])) throw OperationError(std::string("float of ") + type_name(args[0]));
  return as_double(args[0]);
}

Value builtin_len(const std::vector<Value>& args) {
  const auto* text = std::get_if<std::string>(&args[0]);
  if (!text) throw OperationError(std::string("len of ") + type_name(args[0]));
  return static_cast<std::int64_t>(text->size());
}

Value builtin_text(const std::vector<Value>& args) { return to_text(args[0]); }

constexpr Builtin BUILTINS[] = {
    {"abs", 1, builtin_abs}, {"min", 2, builtin_min},     {"max", 2, builtin_max},   {"int", 1, builtin_int},
    {"len", 1, builtin_len}, {"float", 1, builtin_float}, {"text", 1, builtin_text},
};

}  // namespace

Value operate(Unary op, const Value& operand) {
  if (op == Unary::not_) return !require_bool(operand, "operand of !");
  if (std::holds_alternative<double>(operand)) return -std::get<double>(operand);
  if (!is_number(operand)) throw OperationError(std::string("- of ") + type_name(operand));
  std::int64_t result = 0;
  if (__builtin_sub_overflow(std::int64_t{0}, std::get<std::int64_t>(operand), &result)) throw OperationError("overflow in -");
  return result;
}

Value operate(Binary op, const Value& left, const Value& right) {
  const bool are_numbers = is_number(left) && is_number(right);
  const bool have_one_type = left.index() == right.index();
  if (op == Binary::eq || op == Binary::ne) {
    const bool is_equal = (are_numbers || have_one_type) && compare_values(left, right) == 0;
    return is_equal == (op == Binary::eq);
  }
  auto fail = [&]() -> OperationError {
    return OperationError(std::string(symbol(op)) + " of " + type_name(left) + " and " + type_name(right));
  };
  if (op >= Binary::lt) {
    if (!are_numbers && !(have_one_type && std::holds_alternative<std::string>(left))) throw fail();
    const auto order = compare_values(left, right);
    if (!order) return false;
    switch (op) {
      case Binary::lt: return *order < 0;
      case Binary::le: return *order <= 0;
      case Binary::gt: return *order > 0;
      default: return *order >= 0;
    }
  }
  if (op == Binary::add && have_one_type && std::holds_alternative<std::string>(left)) {
    return std::get<std::string>(left) + std::get<std::string>(right);
  }
  if (!are_numbers) throw fail();
  if (have_one_type && std::holds_alternative<std::int64_t>(left)) {
    return int_operation(op, std::get<std::int64_t>(left), std::get<std::int64_t>(right));
  }
  return float_operation(op, as_double(left), as_double(right));
}

const Builtin* find_builtin(std::string_view name) {
  for (const Builtin& builtin : BUILTINS) {
    if (builtin.name == name) return &builtin;
  }
  return nullptr;
}

bool require_bool(const Value& value, const std::string& what) {
  if (!std::holds_alternative<bool>(value)) throw OperationError(what + " is not a bool");
  return std::get<bool>(value);
}

std::string to_text(const Value& value) {
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  if (const auto* flag = std::get_if<bool>(&value)) return *flag ? "true" : "false";
  if (const auto* number = std::get_if<std::int64_t>(&value)) return std::to_string(*number);
  const double number = std::get<double>(value);
  if (std::isnan(number)) return "nan";
  char buffer[64];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, number).ptr;
  std::string text(buffer, end);
  if (text.find_first_not_of("-0123456789") == std::string::npos) text += ".0";
  return text;
}

std::optional<double> parse_float(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<std::int64_t> parse_int(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace rules
