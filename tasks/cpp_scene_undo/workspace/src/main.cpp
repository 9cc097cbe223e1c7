// Reads commands from the standard input, one per line, and answers each. docs/MODEL.md describes them.
#include <iostream>
#include <sstream>

#include "snapshot.hpp"
#include "words.hpp"

namespace {

using scene::Error;
using scene::Handle;
using scene::World;

struct BadCommand {};

// Arguments of a command.
class Arguments {
 public:
  Arguments(const World& world, std::vector<std::string> words) : world_(world), words_(std::move(words)) {}

  std::size_t size() const { return words_.size() - 1; }
  const std::string& raw(std::size_t n) const { return words_.at(n); }
  const std::string& word(std::size_t n) const {
    if (!scene::is_word(words_.at(n))) throw BadCommand();
    return words_[n];
  }
  std::int64_t value(std::size_t n) const {
    const auto value = scene::parse_value(words_.at(n));
    if (!value) throw BadCommand();
    return *value;
  }
  Handle entity(std::size_t n) const {
    const auto handle = scene::parse_handle(words_.at(n));
    if (!handle || !world_.find(*handle)) throw Error("no entity `" + words_[n] + "`");
    return *handle;
  }
  Handle parent(std::size_t n) const { return words_.at(n) == "root" ? Handle() : entity(n); }

 private:
  const World& world_;
  std::vector<std::string> words_;
};

std::string list(const std::vector<Handle>& handles) {
  std::string text;
  for (const Handle handle : handles) text += (text.empty() ? "" : ",") + to_text(handle);
  return "[" + text + "]";
}

std::string show(const World& world, Handle handle) {
  const scene::Entity& entity = *world.find(handle);
  std::string tags, props, links;
  for (const auto& tag : entity.tags) tags += (tags.empty() ? "" : ",") + tag;
  for (const auto& [key, value] : entity.props) props += (props.empty() ? "" : ",") + key + "=" + std::to_string(value);
  for (const auto& [key, target] : entity.links) {
    links += (links.empty() ? "" : ",") + key + "=" + (world.find(target) ? to_text(target) : "dead");
  }
  return to_text(handle) + " name=" + entity.name + " parent=" + (entity.parent.is_root() ? "root" : to_text(entity.parent)) +
         " children=" + list(entity.children) + " tags=[" + tags + "] props=[" + props + "] links=[" + links + "]";
}

std::string tree(const World& world) {
  std::string lines;
  std::size_t count = 0;
  auto add = [&](auto& self, Handle handle, std::size_t depth) -> void {
    ++count;
    lines += "\n" + std::string(2 * depth, ' ') + to_text(handle) + " " + world.find(handle)->name;
    for (const Handle child : world.find(handle)->children) self(self, child, depth + 1);
  };
  for (const Handle child : world.root().children) add(add, child, 1);
  return std::to_string(count) + lines;
}

// Runs a command and returns its answer, without `ok`.
std::string run(World& world, const Arguments& args) {
  const std::string& name = args.raw(0);
  const std::size_t count = args.size();
  auto is = [&](const char* command, std::size_t arguments) { return name == command && count == arguments; };

  if (is("create", 1)) return to_text(world.create(args.word(1), Handle()));
  if (is("create", 3) && args.raw(2) == "in") {
    const std::string& own = args.word(1);
    return to_text(world.create(own, args.parent(3)));
  }
  if (is("destroy", 1)) return std::to_string(world.destroy(args.entity(1)));
  if (is("rename", 2)) {
    const std::string& own = args.word(2);
    world.rename(args.entity(1), own);
    return "";
  }
  if (is("move", 2)) {
    const Handle handle = args.entity(1);
    world.move(handle, args.parent(2), std::nullopt);
    return "";
  }
  if (is("move", 4) && args.raw(3) == "before") {
    const Handle handle = args.entity(1), parent = args.parent(2);
    world.move(handle, parent, args.entity(4));
    return "";
  }
  if (is("set", 3)) {
    const std::string& key = args.word(2);
    const std::int64_t value = args.value(3);
    world.set(args.entity(1), key, value);
    return "";
  }
  if (is("link", 3)) {
    const std::string& key = args.word(2);
    const Handle handle = args.entity(1);
    world.link(handle, key, args.entity(3));
    return "";
  }
  if (count == 2 && (name == "unset" || name == "tag" || name == "untag" || name == "unlink")) {
    const std::string& word = args.word(2);
    const Handle handle = args.entity(1);
    if (name == "unset") world.unset(handle, word);
    if (name == "tag") world.tag(handle, word);
    if (name == "untag") world.untag(handle, word);
    if (name == "unlink") world.unlink(handle, word);
    return "";
  }
  if (is("clone", 2)) {
    const std::string& own = args.word(2);
    return to_text(world.clone(args.entity(1), own));
  }
  if (is("prune", 1)) return std::to_string(world.prune(args.word(1)));
  if (is("sprout", 2)) {
    const std::string& tag = args.word(1);
    return std::to_string(world.sprout(tag, args.word(2)));
  }

  if (is("begin", 0)) return world.begin(), "";
  if (is("commit", 0)) return world.commit(), "";
  if (is("rollback", 0)) return world.rollback(), "";
  if (is("undo", 0)) return world.undo(), "";
  if (is("redo", 0)) return world.redo(), "";
  if (is("save", 1)) return scene::save(world, args.word(1)), "";
  if (is("load", 1)) return scene::load(world, args.word(1)), "";

  if (is("show", 1)) return show(world, args.entity(1));
  if (is("tree", 0)) return tree(world);
  if (is("find", 1)) {
    const auto found = world.find_name(args.word(1));
    if (!found) throw Error("no name `" + args.raw(1) + "`");
    return to_text(*found);
  }
  if (is("tagged", 1)) {
    std::string text;
    for (const Handle handle : world.tagged(args.word(1))) text += (text.empty() ? "" : " ") + to_text(handle);
    return text;
  }
  if (is("stats", 0)) {
    const scene::Stats stats = world.stats();
    std::ostringstream text;
    text << "live=" << stats.live << " free=" << stats.free << " retired=" << stats.retired << " undo=" << stats.undo
         << " redo=" << stats.redo;
    return text.str();
  }
  throw BadCommand();
}

}  // namespace

int main() {
  World world;
  for (std::string line; std::getline(std::cin, line);) {
    if (line.empty() || line[0] == '#') continue;
    try {
      const std::string answer = run(world, Arguments(world, scene::split_words(line)));
      std::cout << "ok" << (answer.empty() ? "" : " ") << answer << "\n";
    } catch (const Error& error) {
      std::cout << "error: " << error.what() << "\n";
    } catch (const BadCommand&) {
      std::cout << "error: bad command\n";
    }
    std::cout << std::flush;
  }
}
