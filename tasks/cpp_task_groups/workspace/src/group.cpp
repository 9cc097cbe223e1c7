#include "core.hpp"

namespace jobs {

namespace detail {

void GroupState::add() {
  for (GroupState* state = this; state; state = state->parent) {
    std::lock_guard lock(state->mutex);
    ++state->unfinished;
  }
}

void GroupState::finish() {
  for (GroupState* state = this; state; state = state->parent) {
    {
      std::lock_guard lock(state->mutex);
      --state->unfinished;
    }
    state->is_idle.notify_one();
  }
}

// Queued jobs stay in the queue: a worker drops them when it takes them.
void GroupState::cancel() {
  cancellation->cancel();
  for (GroupState* child : children) child->cancel();
}

}  // namespace detail

Group::Group(Pool& pool) : state_(std::make_unique<detail::GroupState>(*pool.core_, nullptr)) {
  std::lock_guard lock(state_->core.mutex);
  state_->core.groups.push_back(state_.get());
}

Group::Group(Group& parent) : state_(std::make_unique<detail::GroupState>(parent.state_->core, parent.state_.get())) {
  std::lock_guard lock(parent.state_->mutex);
  parent.state_->children.push_back(state_.get());
}

Group::~Group() {
  cancel();
  try {
    wait();
  } catch (...) {
  }
  if (state_->parent) {
    std::lock_guard lock(state_->parent->mutex);
    std::erase(state_->parent->children, state_.get());
  } else {
    std::lock_guard lock(state_->core.mutex);
    std::erase(state_->core.groups, state_.get());
  }
}

Submit Group::submit(int priority, Job job) {
  detail::Core& core = state_->core;
  if (core.is_closing) return Submit::closed;
  if (cancelled()) return Submit::cancelled;
  {
    std::lock_guard lock(core.mutex);
    core.queue.push({priority, state_.get(), std::move(job), token()});
  }
  state_->add();
  core.changed.notify_one();
  return Submit::accepted;
}

void Group::wait() {
  if (detail::worker_of == &state_->core) {
    // A worker that waits runs jobs, so that a pool whose workers all wait doesn't stop.
    while (unfinished() > 0 && state_->core.run_next()) {
    }
  }
  std::unique_lock lock(state_->mutex);
  while (state_->unfinished > 0) state_->is_idle.wait(lock);
  if (state_->error) std::rethrow_exception(state_->error);
}

void Group::cancel() { state_->cancel(); }

bool Group::cancelled() const { return state_->cancellation->is_cancelled; }

Token Group::token() const { return Token(state_->cancellation); }

std::size_t Group::unfinished() const {
  std::lock_guard lock(state_->mutex);
  return state_->unfinished;
}

}  // namespace jobs
