// State behind pools, groups, tokens and watches. Internal.
#pragma once

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <queue>
#include <thread>
#include <vector>

#include "jobs.hpp"

namespace jobs::detail {

// Cancellation flag and callbacks of one group.
struct CancelState {
  std::mutex mutex;
  std::atomic<bool> is_cancelled = false;
  std::size_t next_id = 1;
  std::map<std::size_t, std::function<void()>> callbacks;

  void cancel();
};

struct GroupState {
  explicit GroupState(Core& core, GroupState* parent) : core(core), parent(parent) {}

  Core& core;
  GroupState* parent;
  std::vector<GroupState*> children;
  std::shared_ptr<CancelState> cancellation = std::make_shared<CancelState>();

  std::mutex mutex;
  std::condition_variable is_idle;
  std::size_t unfinished = 0;
  std::exception_ptr error;

  void add();
  void finish();
  void cancel();
};

struct Entry {
  int priority;
  GroupState* group;
  Job job;
  Token token;

  bool operator<(const Entry& other) const { return priority < other.priority; }
};

struct Core {
  mutable std::mutex mutex;
  // Signals new jobs to workers and to jobs that wait for a group.
  std::condition_variable changed;
  std::priority_queue<Entry> queue;
  std::atomic<bool> is_closing = false;
  std::vector<GroupState*> groups;
  std::vector<std::thread> threads;

  void work_loop();
  bool run_next();
  void shutdown(Shutdown mode);
};

// The pool whose worker this thread is.
extern thread_local Core* worker_of;

}  // namespace jobs::detail
