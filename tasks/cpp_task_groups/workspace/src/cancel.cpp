#include "core.hpp"

namespace jobs {

void detail::CancelState::cancel() {
  std::lock_guard lock(mutex);
  is_cancelled = true;
  for (auto& [id, callback] : callbacks) callback();
  callbacks.clear();
}

Watch::Watch(Watch&& other) noexcept : state_(std::move(other.state_)), id_(other.id_) {}

Watch& Watch::operator=(Watch&& other) noexcept {
  reset();
  state_ = std::move(other.state_);
  id_ = other.id_;
  return *this;
}

Watch::~Watch() { reset(); }

void Watch::reset() {
  if (!state_) return;
  std::lock_guard lock(state_->mutex);
  state_->callbacks.erase(id_);
  state_.reset();
}

bool Token::cancelled() const { return state_->is_cancelled; }

Watch Token::on_cancel(std::function<void()> callback) const {
  Watch watch;
  if (cancelled()) {
    callback();
    return watch;
  }
  std::lock_guard lock(state_->mutex);
  watch.state_ = state_;
  watch.id_ = state_->next_id++;
  state_->callbacks.emplace(watch.id_, std::move(callback));
  return watch;
}

}  // namespace jobs
