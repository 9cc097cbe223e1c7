// rules run FILE [NAME=VALUE]...
#include <fstream>
#include <iostream>
#include <iterator>

#include "interpreter.hpp"
#include "parser.hpp"

namespace {

constexpr int FAILED = 1;
constexpr int REFUSED = 2;

int usage() {
  std::cerr << "usage: rules run FILE [NAME=VALUE]...\n";
  return REFUSED;
}

std::optional<std::string> read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return std::nullopt;
  return std::string(std::istreambuf_iterator<char>(file), {});
}

rules::Value parse_input(const std::string& text) {
  if (text == "true" || text == "false") return text == "true";
  if (const auto value = rules::parse_int(text)) return *value;
  if (const auto value = rules::parse_float(text)) return *value;
  return text;
}

std::optional<rules::Inputs> parse_inputs(const std::vector<std::string>& words) {
  rules::Inputs inputs;
  for (const std::string& word : words) {
    const auto equals = word.find('=');
    if (equals == std::string::npos) return std::nullopt;
    inputs[word.substr(0, equals)] = parse_input(word.substr(equals + 1));
  }
  return inputs;
}

int report(const std::string& file, const rules::SourceError& error, int status) {
  std::cout << std::flush;
  std::cerr << file << ":" << error.position.line << ":" << error.position.column << ": " << error.what() << "\n";
  return status;
}

int run(const std::string& path, const rules::Inputs& inputs) {
  const auto source = read_file(path);
  if (!source) {
    std::cerr << "can't read `" << path << "`\n";
    return REFUSED;
  }
  rules::Block program;
  try {
    program = rules::parse(*source);
  } catch (const rules::SourceError& error) {
    return report(path, error, REFUSED);
  }
  try {
    rules::interpret(program, inputs, std::cout);
  } catch (const rules::SourceError& error) {
    return report(path, error, FAILED);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  if (words.size() < 2 || words[0] != "run") return usage();
  const auto inputs = parse_inputs({words.begin() + 2, words.end()});
  return inputs ? run(words[1], *inputs) : usage();
}
