// Parses rule files, and checks that all names are declared.
#pragma once

#include <stdexcept>
#include <string>

#include "ast.hpp"

namespace rules {

// An error at a position of the source.
struct SourceError : std::runtime_error {
  SourceError(Position position, const std::string& message) : std::runtime_error(message), position(position) {}
  Position position;
};

Block parse(const std::string& source);

}  // namespace rules
