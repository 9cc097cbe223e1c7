// Values in slots that are reused. The generation of a slot tells its values apart.
#pragma once

#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "handle.hpp"

namespace scene {

template <class T>
class SlotMap {
 public:
  Handle insert(T value) {
    std::uint32_t index = static_cast<std::uint32_t>(slots_.size());
    if (free_.empty()) {
      slots_.emplace_back();
    } else {
      index = *free_.begin();
      free_.erase(free_.begin());
    }
    slots_[index].value = std::move(value);
    return {index, slots_[index].generation};
  }

  // Puts a value back under an earlier handle.
  void put(Handle handle, T value) {
    while (slots_.size() <= handle.index) {
      free_.insert(static_cast<std::uint32_t>(slots_.size()));
      slots_.emplace_back();
    }
    free_.erase(handle.index);
    slots_[handle.index].generation = handle.generation;
    slots_[handle.index].value = std::move(value);
  }

  void erase(Handle handle) {
    if (!get(handle)) return;
    Slot& slot = slots_[handle.index];
    slot.value.reset();
    slot.generation = (slot.generation + 1) % (GENERATION_MAX + 1);
    free_.insert(handle.index);
  }

  T* get(Handle handle) {
    if (handle.index > slots_.size()) return nullptr;
    Slot& slot = slots_[handle.index];
    return slot.value && slot.generation == handle.generation ? &*slot.value : nullptr;
  }
  const T* get(Handle handle) const { return const_cast<SlotMap*>(this)->get(handle); }

  // All live handles by ascending index.
  std::vector<Handle> handles() const {
    std::vector<Handle> found;
    for (std::uint32_t i = 0; i < slots_.size(); ++i) {
      if (slots_[i].value) found.push_back({i, slots_[i].generation});
    }
    return found;
  }

  // Highest issued generation of each slot, 0 if none.
  std::vector<std::uint32_t> issued() const {
    std::vector<std::uint32_t> found;
    for (const Slot& slot : slots_) found.push_back(slot.value ? slot.generation : slot.generation - 1);
    return found;
  }

  // Sets the generations that empty slots issue next.
  void set_issued(const std::vector<std::uint32_t>& issued) {
    for (std::uint32_t i = 0; i < issued.size(); ++i) {
      if (i == slots_.size()) {
        slots_.emplace_back();
        free_.insert(i);
      }
      if (!slots_[i].value) slots_[i].generation = issued[i] + 1;
    }
  }

 private:
  struct Slot {
    std::uint32_t generation = 1;
    std::optional<T> value;
  };

  std::vector<Slot> slots_;
  std::set<std::uint32_t> free_;
};

}  // namespace scene
