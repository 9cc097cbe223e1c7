// Counts the words of files: one line per file in the order of the arguments, then the total.
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

#include "jobs.hpp"

namespace {

constexpr unsigned WORKERS = 4;

struct Unreadable : std::runtime_error {
  explicit Unreadable(const std::string& name) : std::runtime_error("can't read `" + name + "`") {}
};

std::size_t count_words(const std::string& name, const jobs::Token& token) {
  std::ifstream file(name);
  if (!file) throw Unreadable(name);
  std::size_t words = 0;
  for (std::string word; !token.cancelled() && file >> word;) ++words;
  return words;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> names(argv + 1, argv + argc);
  std::vector<std::size_t> counts(names.size());
  jobs::Pool pool(WORKERS);
  jobs::Group files(pool);
  for (std::size_t i = 0; i < names.size(); ++i) {
    files.submit(0, [&, i](const jobs::Token& token) { counts[i] = count_words(names[i], token); });
  }
  try {
    files.wait();
  } catch (const Unreadable& error) {
    std::cerr << "wordcount: " << error.what() << "\n";
    return 1;
  }
  std::size_t total = 0;
  for (std::size_t i = 0; i < names.size(); ++i) {
    std::cout << counts[i] << " " << names[i] << "\n";
    total += counts[i];
  }
  std::cout << total << " total\n";
}
