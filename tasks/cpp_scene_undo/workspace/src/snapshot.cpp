#include "snapshot.hpp"

#include <fstream>
#include <sstream>

#include "words.hpp"

namespace scene {

namespace {

struct Damaged {};

void require(bool condition) {
  if (!condition) throw Damaged();
}

std::string joined(const std::vector<Handle>& handles) {
  std::string text;
  for (const Handle handle : handles) text += " " + to_text(handle);
  return text;
}

// Reads lines that start with a keyword.
class Reader {
 public:
  explicit Reader(const std::string& text) : stream_(text) {}

  // Returns the words after the keyword.
  std::vector<std::string> line(const std::string& keyword) {
    require(pending_ || std::getline(stream_, line_));
    pending_ = false;
    std::vector<std::string> words = split_words(line_);
    require(words[0] == keyword);
    words.erase(words.begin());
    return words;
  }

  bool is_next(const std::string& keyword) {
    require(pending_ || std::getline(stream_, line_));
    pending_ = true;
    return split_words(line_)[0] == keyword;
  }

 private:
  std::istringstream stream_;
  std::string line_;
  bool pending_ = false;
};

struct Content {
  std::map<Handle, Entity> entities;
  Entity root;
  std::vector<std::uint32_t> issued;
};

Handle read_handle(const std::string& text, const Content& content) {
  const auto handle = parse_handle(text);
  require(handle && handle->index < content.issued.size() && handle->generation <= content.issued[handle->index]);
  return *handle;
}

std::vector<Handle> read_handles(const std::vector<std::string>& words, const Content& content) {
  std::vector<Handle> handles;
  for (const std::string& word : words) handles.push_back(read_handle(word, content));
  return handles;
}

// Splits `key=value` items.
std::vector<std::pair<std::string, std::string>> read_pairs(const std::vector<std::string>& words) {
  std::vector<std::pair<std::string, std::string>> pairs;
  for (const std::string& word : words) {
    const auto equals = word.find('=');
    require(equals != std::string::npos);
    pairs.emplace_back(word.substr(0, equals), word.substr(equals + 1));
    require(is_word(pairs.back().first));
  }
  return pairs;
}

// Sets the parents, and checks that each entity is below the root.
void connect(Content& content) {
  std::vector<Handle> open{Handle()};
  std::set<Handle> seen;
  while (!open.empty()) {
    const Handle parent = open.back();
    open.pop_back();
    for (const Handle child : parent.is_root() ? content.root.children : content.entities.at(parent).children) {
      require(content.entities.count(child));
      seen.insert(child);
      content.entities.at(child).parent = parent;
      open.push_back(child);
    }
  }
  require(seen.size() == content.entities.size());
}

Content parse(const std::string& text) {
  Content content;
  Reader reader(text);
  require(reader.line("scene") == std::vector<std::string>{"1"});
  for (const std::string& word : reader.line("issued")) {
    const auto value = parse_value(word);
    require(value && *value >= 0 && *value <= GENERATION_MAX);
    content.issued.push_back(static_cast<std::uint32_t>(*value));
  }
  content.root.children = read_handles(reader.line("root"), content);
  while (reader.is_next("entity")) {
    const auto head = reader.line("entity");
    require(head.size() == 2 && is_word(head[1]));
    const Handle handle = read_handle(head[0], content);
    require(content.entities.empty() || content.entities.rbegin()->first.index < handle.index);
    Entity& entity = content.entities[handle];
    entity.name = head[1];
    for (const std::string& tag : reader.line("tags")) {
      require(is_word(tag));
      entity.tags.insert(tag);
    }
    for (const auto& [key, word] : read_pairs(reader.line("props"))) {
      const auto value = parse_value(word);
      require(value.has_value());
      entity.props[key] = *value;
    }
    for (const auto& [key, word] : read_pairs(reader.line("links"))) entity.links[key] = read_handle(word, content);
    entity.children = read_handles(reader.line("children"), content);
  }
  require(reader.line("end") == std::vector<std::string>{std::to_string(content.entities.size())});
  connect(content);
  return content;
}

}  // namespace

void save(const World& world, const std::string& path) {
  std::ostringstream text;
  text << "scene 1\nissued";
  for (const std::uint32_t generation : world.issued()) text << " " << generation;
  text << "\nroot" << joined(world.root().children) << "\n";
  for (const Handle handle : world.handles()) {
    const Entity& entity = *world.find(handle);
    text << "entity " << to_text(handle) << " " << entity.name << "\ntags";
    for (const std::string& tag : entity.tags) text << " " << tag;
    text << "\nprops";
    for (const auto& [key, value] : entity.props) text << " " << key << "=" << value;
    text << "\nlinks";
    for (const auto& [key, target] : entity.links) text << " " << key << "=" << to_text(target);
    text << "\nchildren" << joined(entity.children) << "\n";
  }
  text << "end " << world.handles().size() << "\n";
  std::ofstream file(path, std::ios::binary);
  file << text.str();
  file.close();
  if (!file) throw Error("can't write `" + path + "`");
}

void load(World& world, const std::string& path) {
  if (world.in_transaction()) throw Error("in a transaction");
  std::ifstream file(path, std::ios::binary);
  if (!file) throw Error("can't read `" + path + "`");
  const std::string text(std::istreambuf_iterator<char>(file), {});
  try {
    const Content content = parse(text);
    world.replace(content.entities, content.root, content.issued);
  } catch (const Damaged&) {
    throw Error("`" + path + "` is damaged");
  }
}

}  // namespace scene
