#include "core.hpp"

namespace jobs {

namespace detail {

thread_local Core* worker_of = nullptr;

void Core::work_loop() {
  worker_of = this;
  while (true) {
    if (run_next()) continue;
    if (is_closing) return;
    std::unique_lock lock(mutex);
    changed.wait(lock);
  }
}

// Runs the next job of the queue. Returns false if there is none.
bool Core::run_next() {
  std::unique_lock lock(mutex);
  if (queue.empty()) return false;
  Entry entry = queue.top();
  queue.pop();
  if (entry.token.cancelled()) {
    entry.group->finish();
    return true;
  }
  lock.unlock();
  try {
    entry.job(entry.token);
  } catch (const std::exception&) {
    {
      std::lock_guard guard(entry.group->mutex);
      entry.group->error = std::current_exception();
    }
    entry.group->cancel();
  }
  entry.group->finish();
  return true;
}

void Core::shutdown(Shutdown mode) {
  is_closing = true;
  if (mode == Shutdown::cancel) {
    for (GroupState* group : groups) group->cancel();
  }
  changed.notify_all();
  for (std::thread& thread : threads) {
    if (thread.joinable()) thread.join();
  }
  threads.clear();
}

}  // namespace detail

Pool::Pool(unsigned workers) : core_(std::make_unique<detail::Core>()) {
  for (unsigned i = 0; i < workers; ++i) {
    core_->threads.emplace_back([core = core_.get()] { core->work_loop(); });
  }
}

Pool::~Pool() { core_->shutdown(Shutdown::cancel); }

void Pool::shutdown(Shutdown mode) { core_->shutdown(mode); }

std::size_t Pool::queued() const {
  std::lock_guard lock(core_->mutex);
  return core_->queue.size();
}

}  // namespace jobs
