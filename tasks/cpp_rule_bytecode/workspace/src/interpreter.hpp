// Runs syntax trees.
#pragma once

#include <map>
#include <ostream>
#include <string>

#include "ast.hpp"

namespace rules {

using Inputs = std::map<std::string, Value>;

// Prints to `out`. Throws a `SourceError` for errors at run time.
void interpret(const Block& program, const Inputs& inputs, std::ostream& out);

}  // namespace rules
