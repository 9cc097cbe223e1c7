// Entities, their hierarchy and indexes, and the history of changes. docs/MODEL.md has the rules.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "slot_map.hpp"

namespace scene {

constexpr std::size_t HISTORY_MAX = 8;

struct Error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct Entity {
  std::string name;
  Handle parent;
  std::vector<Handle> children;
  std::set<std::string> tags;
  std::map<std::string, std::int64_t> props;
  std::map<std::string, Handle> links;

  bool operator==(const Entity&) const = default;
};

// State of an entity before and after a step; none if it doesn't exist.
struct Change {
  std::optional<Entity> before;
  std::optional<Entity> after;
};

// Changes of a step by handle. The root's children are kept under the root's handle.
using ChangeSet = std::map<Handle, Change>;

struct Stats {
  std::size_t live = 0, free = 0, retired = 0, undo = 0, redo = 0;
};

class World {
 public:
  // Returns null for handles that name no live entity.
  const Entity* find(Handle handle) const { return slots_.get(handle); }
  const Entity& root() const { return root_; }
  std::optional<Handle> find_name(const std::string& name) const;
  std::vector<Handle> tagged(const std::string& tag) const;
  std::vector<Handle> handles() const { return slots_.handles(); }
  std::vector<std::uint32_t> issued() const { return slots_.issued(); }
  Stats stats() const;

  Handle create(const std::string& name, Handle parent);
  std::size_t destroy(Handle handle);
  void rename(Handle handle, const std::string& name);
  void move(Handle handle, Handle parent, std::optional<Handle> before);
  void set(Handle handle, const std::string& key, std::int64_t value);
  void unset(Handle handle, const std::string& key);
  void tag(Handle handle, const std::string& tag);
  void untag(Handle handle, const std::string& tag);
  void link(Handle handle, const std::string& key, Handle target);
  void unlink(Handle handle, const std::string& key);
  Handle clone(Handle handle, const std::string& name);
  std::size_t prune(const std::string& tag);
  std::size_t sprout(const std::string& tag, const std::string& name);

  void begin();
  void commit();
  void rollback();
  void undo();
  void redo();
  bool in_transaction() const { return !open_.empty(); }

  // Replaces all entities. `root` has the root's children.
  void replace(const std::map<Handle, Entity>& entities, const Entity& root, const std::vector<std::uint32_t>& issued);

 private:
  Entity& entity(Handle handle);
  Entity& edit(Handle handle);
  Handle add(Entity entity, std::size_t position);
  void remove(Handle handle);
  void detach(Handle handle);
  void check_name(const std::string& name) const;
  void index(Handle handle);
  void unindex(Handle handle);
  // Ends a command: its changes become a step, or part of the open transaction.
  void record();
  void apply(const ChangeSet& changes, std::optional<Entity> Change::*side);
  std::vector<Handle> subtree(Handle handle) const;
  void add_step(ChangeSet changes);

  SlotMap<Entity> slots_;
  Entity root_;
  std::map<std::string, Handle> names_;
  std::map<std::string, std::set<Handle>> tags_;
  ChangeSet current_;
  std::vector<ChangeSet> open_;
  std::deque<ChangeSet> undo_;
  std::vector<ChangeSet> redo_;
};

}  // namespace scene
