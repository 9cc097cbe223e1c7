// Runs scripts of steps against the jobs library, and prints what happens, one event per line.
//
// Input: `script NAME STEP STEP …` defines a script; any other line is steps for the main thread.
// A step is `op:argument:…`.
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <iostream>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "jobs.hpp"

using Words = std::vector<std::string>;

namespace {

std::mutex out_mutex;
void say(const std::string& text) {
  std::lock_guard lock(out_mutex);
  std::cout << text << "\n" << std::flush;
}

std::mutex names_mutex;
std::map<std::string, Words> scripts;
std::map<std::string, std::unique_ptr<jobs::Group>> groups;
std::map<std::string, jobs::Watch*> watches;
std::map<std::string, std::unique_ptr<jobs::Token>> tokens;
std::unique_ptr<jobs::Pool> pool;

std::mutex gate_mutex;
std::condition_variable gate_changed;
std::set<std::string> open_gates;

Words split(const std::string& text, char separator) {
  Words words;
  std::string word;
  std::istringstream stream(text);
  while (std::getline(stream, word, separator)) {
    if (!word.empty()) words.push_back(word);
  }
  return words;
}

jobs::Group& group(const std::string& name) {
  std::lock_guard lock(names_mutex);
  return *groups.at(name);
}

void run(const std::string& name, const jobs::Token* token);

struct Dropper {
  std::string script;
  ~Dropper() { run(script, nullptr); }
};

const char* name_of(jobs::Submit result) {
  return result == jobs::Submit::accepted ? "accepted" : result == jobs::Submit::cancelled ? "cancelled" : "closed";
}

void submit(const Words& w) {
  std::shared_ptr<Dropper> dropper;
  if (w.size() > 4) dropper.reset(new Dropper{w[4]});
  auto job = [name = w[3], dropper = std::move(dropper)](const jobs::Token& token) { run(name, &token); };
  const jobs::Submit result = group(w[1]).submit(std::stoi(w[2]), std::move(job));
  if (result != jobs::Submit::accepted) say(w[3] + " " + name_of(result));
}

void wait(const Words& w) {
  try {
    group(w[1]).wait();
    say(w[2] + " ok");
  } catch (const std::logic_error&) {
    say(w[2] + " logic_error");
  } catch (const std::exception& error) {
    say(w[2] + " threw " + error.what());
  } catch (int number) {
    say(w[2] + " threw int " + std::to_string(number));
  }
}

void churn(int rounds) {
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < rounds; ++i) {
        int parts[3] = {};
        auto own = std::make_unique<jobs::Group>(*pool);
        auto child = std::make_unique<jobs::Group>(*own);
        own->submit(i % 3, [&](const jobs::Token&) { parts[0] = 1; });
        child->submit(i % 2, [&](const jobs::Token&) { parts[1] = 1; });
        own->submit(0, [&](const jobs::Token&) { parts[2] = 1; });
        own->wait();
        if (parts[0] + parts[1] + parts[2] != 3 || own->unfinished() != 0) ++wrong;
        if (i % 2) own.reset();
        child.reset();
      }
    });
  }
  for (auto& thread : threads) thread.join();
  say("churn wrong " + std::to_string(wrong));
}

void cancel_race(int rounds) {
  int wrong = 0;
  for (int i = 0; i < rounds; ++i) {
    constexpr int JOBS = 40;
    std::atomic<int> started = 0, destroyed = 0, calls = 0, accepted = 0;
    struct Mark {
      std::atomic<int>& count;
      ~Mark() { ++count; }
    };
    jobs::Group own(*pool);
    jobs::Watch watch = own.token().on_cancel([&] { ++calls; });
    std::thread other([&] { own.cancel(); });
    std::thread third([&] { own.cancel(); });
    for (int n = 0; n < JOBS; ++n) {
      std::shared_ptr<Mark> mark(new Mark{destroyed});
      if (own.submit(0, [&started, mark = std::move(mark)](const jobs::Token&) { ++started; }) == jobs::Submit::accepted) ++accepted;
    }
    other.join();
    third.join();
    own.wait();
    if (calls != 1 || destroyed != JOBS || started > accepted || own.unfinished() != 0) ++wrong;
  }
  say("cancel_race wrong " + std::to_string(wrong));
}

void shutdown_race(int rounds) {
  int wrong = 0;
  for (int i = 0; i < rounds; ++i) {
    std::atomic<int> accepted = 0, ran = 0;
    jobs::Pool own(2);
    jobs::Group all(own);
    std::vector<std::thread> threads;
    for (int t = 0; t < 2; ++t) {
      threads.emplace_back([&] {
        while (true) {
          auto result = all.submit(0, [&](const jobs::Token&) {
            if (all.submit(1, [&](const jobs::Token&) { ++ran; }) == jobs::Submit::accepted) ++accepted;
            ++ran;
          });
          if (result != jobs::Submit::accepted) break;
          ++accepted;
        }
      });
    }
    threads.emplace_back([&] { own.shutdown(jobs::Shutdown::drain); });
    own.shutdown(jobs::Shutdown::drain);
    for (auto& thread : threads) thread.join();
    if (accepted != ran || all.unfinished() != 0) ++wrong;
  }
  say("shutdown_race wrong " + std::to_string(wrong));
}

void step(const std::string& text, const jobs::Token* token) {
  const Words w = split(text, ':');
  const std::string& op = w[0];
  if (op == "say") {
    say(w[1]);
  } else if (op == "gate") {
    say("at " + w[1]);
    std::unique_lock lock(gate_mutex);
    gate_changed.wait(lock, [&] { return open_gates.count(w[1]) > 0; });
  } else if (op == "open") {
    std::lock_guard lock(gate_mutex);
    open_gates.insert(w[1]);
    gate_changed.notify_all();
  } else if (op == "pool") {
    pool = std::make_unique<jobs::Pool>(std::stoi(w[1]));
  } else if (op == "group") {
    auto made = w.size() > 2 ? std::make_unique<jobs::Group>(group(w[2])) : std::make_unique<jobs::Group>(*pool);
    std::lock_guard lock(names_mutex);
    groups[w[1]] = std::move(made);
  } else if (op == "drop") {
    std::unique_ptr<jobs::Group> old;
    {
      std::lock_guard lock(names_mutex);
      old = std::move(groups.at(w[1]));
      groups.erase(w[1]);
    }
    old.reset();
    say(w[2]);
  } else if (op == "submit") {
    submit(w);
  } else if (op == "wait") {
    wait(w);
  } else if (op == "cancel") {
    group(w[1]).cancel();
    say(w[2]);
  } else if (op == "cancelled") {
    say(w[2] + (group(w[1]).cancelled() ? " yes" : " no"));
  } else if (op == "unfinished") {
    say(w[2] + " " + std::to_string(group(w[1]).unfinished()));
  } else if (op == "await_unfinished") {
    while (group(w[1]).unfinished() != std::stoul(w[2])) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  } else if (op == "await_closed") {
    while (group(w[1]).submit(-9, [](const jobs::Token&) {}) != jobs::Submit::closed) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  } else if (op == "queued") {
    say(w[1] + " " + std::to_string(pool->queued()));
  } else if (op == "token") {
    say(w[1] + (token->cancelled() ? " yes" : " no"));
  } else if (op == "keep") {
    std::lock_guard lock(names_mutex);
    tokens[w[1]] = std::make_unique<jobs::Token>(groups.at(w[2])->token());
  } else if (op == "kept") {
    say(w[2] + (tokens.at(w[1])->cancelled() ? " yes" : " no"));
  } else if (op == "watch") {
    jobs::Token own = w.size() > 4 ? *tokens.at(w[4]) : group(w[2]).token();
    jobs::Watch watch = own.on_cancel([name = w[3]] { run(name, nullptr); });
    std::lock_guard lock(names_mutex);
    auto& place = watches[w[1]];
    if (!place) place = new jobs::Watch();
    *place = std::move(watch);
  } else if (op == "unwatch") {
    jobs::Watch* watch;
    {
      std::lock_guard lock(names_mutex);
      watch = watches.at(w[1]);
    }
    watch->reset();
    say(w[2]);
  } else if (op == "throw") {
    if (w[1] == "int") throw std::stoi(w[2]);
    throw std::runtime_error(w[2]);
  } else if (op == "shutdown") {
    try {
      pool->shutdown(w[1] == "drain" ? jobs::Shutdown::drain : jobs::Shutdown::cancel);
      say(w[2] + " ok");
    } catch (const std::logic_error&) {
      say(w[2] + " logic_error");
    }
  } else if (op == "unpool") {
    pool.reset();
    say(w[1]);
  } else if (op == "bg") {
    std::thread([name = w[1]] { run(name, nullptr); }).detach();
  } else if (op == "churn") {
    churn(std::stoi(w[1]));
  } else if (op == "cancel_race") {
    cancel_race(std::stoi(w[1]));
  } else if (op == "shutdown_race") {
    shutdown_race(std::stoi(w[1]));
  } else {
    say("unknown step " + text);
  }
}

void run(const std::string& name, const jobs::Token* token) {
  Words steps;
  {
    std::lock_guard lock(names_mutex);
    steps = scripts.at(name);
  }
  for (const std::string& text : steps) step(text, token);
}

}  // namespace

int main() {
  for (std::string line; std::getline(std::cin, line);) {
    Words words = split(line, ' ');
    if (words.empty()) continue;
    if (words[0] == "script") {
      std::lock_guard lock(names_mutex);
      scripts[words.at(1)] = Words(words.begin() + 2, words.end());
      continue;
    }
    for (const std::string& text : words) step(text, nullptr);
  }
  std::cout << std::flush;
  _exit(0);
}
