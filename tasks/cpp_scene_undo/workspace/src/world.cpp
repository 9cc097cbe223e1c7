#include "world.hpp"

#include <algorithm>

#include "words.hpp"

namespace scene {

std::optional<Handle> World::find_name(const std::string& name) const {
  const auto found = names_.find(name);
  return found == names_.end() ? std::nullopt : std::optional(found->second);
}

std::vector<Handle> World::tagged(const std::string& tag) const {
  const auto found = tags_.find(tag);
  return found == tags_.end() ? std::vector<Handle>() : std::vector(found->second.begin(), found->second.end());
}

Stats World::stats() const {
  Stats stats{.live = handles().size(), .undo = undo_.size(), .redo = redo_.size()};
  const auto issued = slots_.issued();
  std::set<std::uint32_t> used;
  for (const Handle handle : handles()) used.insert(handle.index);
  for (std::uint32_t i = 0; i < issued.size(); ++i) {
    if (!used.count(i)) ++(issued[i] == GENERATION_MAX ? stats.retired : stats.free);
  }
  return stats;
}

Handle World::create(const std::string& name, Handle parent) {
  check_name(name);
  const Handle handle = add({.name = name, .parent = parent}, entity(parent).children.size());
  record();
  return handle;
}

std::size_t World::destroy(Handle handle) {
  const std::size_t count = subtree(handle).size();
  detach(handle);
  remove(handle);
  record();
  return count;
}

void World::rename(Handle handle, const std::string& name) {
  Entity& entity = edit(handle);
  if (entity.name == name) return;
  check_name(name);
  names_.erase(entity.name);
  entity.name = name;
  names_.emplace(name, handle);
  record();
}

void World::move(Handle handle, Handle parent, std::optional<Handle> before) {
  for (Handle above = parent; !above.is_root(); above = entity(above).parent) {
    if (above == handle) throw Error("cycle");
  }
  auto& children = edit(parent).children;
  std::size_t position = children.size();
  if (before) {
    position = std::find(children.begin(), children.end(), *before) - children.begin();
  }
  detach(handle);
  if (before && position == children.size()) throw Error("`" + to_text(*before) + "` is not another child of the new parent");
  position = std::min(position, children.size());
  children.insert(children.begin() + position, handle);
  edit(handle).parent = parent;
  record();
}

void World::set(Handle handle, const std::string& key, std::int64_t value) {
  edit(handle).props[key] = value;
  record();
}

void World::unset(Handle handle, const std::string& key) {
  edit(handle).props.erase(key);
  record();
}

void World::tag(Handle handle, const std::string& tag) {
  edit(handle).tags.insert(tag);
  tags_[tag].insert(handle);
  record();
}

void World::untag(Handle handle, const std::string& tag) {
  edit(handle).tags.erase(tag);
  tags_[tag].erase(handle);
  record();
}

void World::link(Handle handle, const std::string& key, Handle target) {
  edit(handle).links[key] = target;
  record();
}

void World::unlink(Handle handle, const std::string& key) {
  edit(handle).links.erase(key);
  record();
}

Handle World::clone(Handle handle, const std::string& name) {
  const std::vector<Handle> originals = subtree(handle);
  check_name(name);
  const auto& siblings = entity(entity(handle).parent).children;
  const std::size_t position = std::find(siblings.begin(), siblings.end(), handle) - siblings.begin() + 1;
  std::map<Handle, Handle> copies;
  for (const Handle original : originals) {
    const Entity& source = entity(original);
    Entity copy{.name = name, .parent = source.parent};
    std::size_t place = position;
    if (original != handle) {
      copy.name += "." + source.name;
      check_name(copy.name);
      copy.parent = copies.at(source.parent);
      place = entity(copy.parent).children.size();
    }
    const Handle added = add(std::move(copy), place);
    copies[original] = added;
    Entity& target = entity(added);
    target.props = source.props;
    for (const std::string& tag : source.tags) {
      target.tags.insert(tag);
      tags_[tag].insert(added);
    }
    for (const auto& [key, to] : source.links) {
      const auto found = copies.find(to);
      target.links[key] = found == copies.end() ? to : found->second;
    }
  }
  record();
  return copies.at(handle);
}

std::size_t World::prune(const std::string& tag) {
  std::size_t count = 0;
  for (const Handle handle : tags_[tag]) {
    count += subtree(handle).size();
    detach(handle);
    remove(handle);
  }
  record();
  return count;
}

std::size_t World::sprout(const std::string& tag, const std::string& name) {
  std::size_t count = 0;
  for (const Handle parent : tags_[tag]) {
    const std::string own = name + "." + std::to_string(parent.index);
    check_name(own);
    add({.name = own, .parent = parent, .tags = entity(parent).tags}, entity(parent).children.size());
    ++count;
  }
  record();
  return count;
}

void World::begin() { open_.emplace_back(); }

void World::commit() {
  if (open_.empty()) throw Error("not in a transaction");
  ChangeSet changes = std::move(open_.back());
  open_.pop_back();
  if (open_.empty()) {
    add_step(std::move(changes));
  } else {
    changes.merge(open_.back());
    open_.back() = std::move(changes);
  }
}

void World::rollback() {
  if (open_.empty()) throw Error("not in a transaction");
  const ChangeSet changes = std::move(open_.back());
  open_.pop_back();
  apply(changes, &Change::before);
}

void World::undo() {
  if (in_transaction()) throw Error("in a transaction");
  if (undo_.empty()) throw Error("nothing to undo");
  apply(undo_.back(), &Change::before);
  redo_.push_back(std::move(undo_.back()));
  undo_.pop_back();
}

void World::redo() {
  if (redo_.empty()) throw Error("nothing to redo");
  apply(redo_.back(), &Change::after);
  undo_.push_back(std::move(redo_.back()));
  redo_.pop_back();
}

void World::replace(const std::map<Handle, Entity>& entities, const Entity& root, const std::vector<std::uint32_t>& issued) {
  slots_ = SlotMap<Entity>();
  names_.clear();
  undo_.clear();
  for (const auto& [handle, entity] : entities) {
    slots_.put(handle, entity);
    index(handle);
  }
  slots_.set_issued(issued);
  root_ = root;
}

Entity& World::entity(Handle handle) {
  if (handle.is_root()) return root_;
  Entity* found = slots_.get(handle);
  if (!found) throw Error("no entity `" + to_text(handle) + "`");
  return *found;
}

// Returns an entity to change, and keeps how it was.
Entity& World::edit(Handle handle) {
  Entity& found = entity(handle);
  if (!current_.count(handle)) current_[handle].before = found;
  return found;
}

// Adds an entity below its parent.
Handle World::add(Entity added, std::size_t position) {
  auto& children = edit(added.parent).children;
  const Handle handle = slots_.insert(std::move(added));
  current_[handle].before = std::nullopt;
  children.insert(children.begin() + position, handle);
  index(handle);
  return handle;
}

// Removes a subtree that has been detached from its parent.
void World::remove(Handle handle) {
  Entity& removed = edit(handle);
  for (const Handle child : removed.children) {
    detach(child);
    remove(child);
  }
  unindex(handle);
  slots_.erase(handle);
}

void World::detach(Handle handle) { std::erase(edit(entity(handle).parent).children, handle); }

void World::check_name(const std::string& name) const {
  if (names_.count(name)) throw Error("name `" + name + "` is taken");
}

void World::index(Handle handle) {
  const Entity& found = entity(handle);
  names_[found.name] = handle;
  for (const std::string& tag : found.tags) tags_[tag].insert(handle);
}

void World::unindex(Handle handle) {
  const Entity& found = entity(handle);
  names_.erase(found.name);
  for (const std::string& tag : found.tags) tags_[tag].erase(handle);
}

void World::record() {
  for (auto& [handle, change] : current_) {
    if (handle.is_root()) {
      change.after = root_;
    } else if (const Entity* found = find(handle)) {
      change.after = *found;
    }
  }
  ChangeSet changes;
  std::swap(changes, current_);
  add_step(std::move(changes));
}

// Adds changes to the open transaction, or to the history.
void World::add_step(ChangeSet changes) {
  if (!open_.empty()) {
    for (auto& [handle, change] : changes) {
      const auto [place, is_new] = open_.back().try_emplace(handle, change);
      if (!is_new) place->second.after = std::move(change.after);
    }
    return;
  }
  if (changes.empty()) return;
  if (undo_.size() > HISTORY_MAX) undo_.pop_front();
  undo_.push_back(std::move(changes));
  redo_.clear();
}

// Brings all entities of a change set to one of its sides.
void World::apply(const ChangeSet& changes, std::optional<Entity> Change::*side) {
  for (const auto& [handle, change] : changes) {
    const std::optional<Entity>& image = change.*side;
    if (handle.is_root()) {
      root_ = *image;
      continue;
    }
    if (find(handle)) {
      unindex(handle);
      slots_.erase(handle);
    }
    if (image) {
      slots_.put(handle, *image);
      index(handle);
    }
  }
}

// Handles of an entity and its descendants, parents first, in the order of children.
std::vector<Handle> World::subtree(Handle handle) const {
  std::vector<Handle> found{handle};
  for (std::size_t i = 0; i < found.size(); ++i) {
    const auto& children = slots_.get(found[i])->children;
    found.insert(found.begin() + i + 1, children.begin(), children.end());
  }
  return found;
}

}  // namespace scene
