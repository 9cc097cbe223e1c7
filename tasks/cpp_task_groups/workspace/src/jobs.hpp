// Public interface of the jobs library. README.md has the overview.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

namespace jobs {

namespace detail {
struct CancelState;
struct Core;
struct GroupState;
}  // namespace detail

enum class Submit { accepted, cancelled, closed };
enum class Shutdown { drain, cancel };

class Token;
using Job = std::function<void(const Token&)>;

// Registration of a cancellation callback. Destroying or resetting it removes the callback.
class Watch {
 public:
  Watch() = default;
  Watch(Watch&& other) noexcept;
  Watch& operator=(Watch&& other) noexcept;
  ~Watch();

  void reset();

 private:
  friend class Token;
  std::shared_ptr<detail::CancelState> state_;
  std::size_t id_ = 0;
};

// Read access to a group's cancellation. Can be copied, and outlives its group.
class Token {
 public:
  bool cancelled() const;
  [[nodiscard]] Watch on_cancel(std::function<void()> callback) const;

 private:
  friend class Group;
  explicit Token(std::shared_ptr<detail::CancelState> state) : state_(std::move(state)) {}
  std::shared_ptr<detail::CancelState> state_;
};

// Fixed number of worker threads and one queue.
class Pool {
 public:
  explicit Pool(unsigned workers);
  ~Pool();
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  void shutdown(Shutdown mode);
  // Number of jobs that wait in the queue.
  std::size_t queued() const;

 private:
  friend class Group;
  std::unique_ptr<detail::Core> core_;
};

// Jobs that are waited for and cancelled together. Groups form trees.
class Group {
 public:
  explicit Group(Pool& pool);
  explicit Group(Group& parent);
  ~Group();
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  Submit submit(int priority, Job job);
  void wait();
  void cancel();
  bool cancelled() const;
  Token token() const;
  // Number of jobs of this group and its descendants that were accepted and have not finished.
  std::size_t unfinished() const;

 private:
  std::unique_ptr<detail::GroupState> state_;
};

}  // namespace jobs
