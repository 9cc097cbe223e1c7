// Files with a whole world. docs/FORMAT.md describes them.
#pragma once

#include <string>

#include "world.hpp"

namespace scene {

void save(const World& world, const std::string& path);
// Replaces the world's content. Changes nothing if the file can't be read or is damaged.
void load(World& world, const std::string& path);

}  // namespace scene
