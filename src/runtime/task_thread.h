// A thread that runs tasks in order: the owner of objects that the event loop must not touch (a server's store, a worker's device).
#pragma once
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace motley::runtime {

class TaskThread {
 public:
  using Task = std::function<void()>;

  TaskThread();
  TaskThread(const TaskThread&) = delete;
  TaskThread& operator=(const TaskThread&) = delete;
  /// Finishes the running task; tasks that have not begun are dropped.
  ~TaskThread();

  /// In order, one at a time. From any thread. A task must not throw.
  void post(Task task);

 private:
  void work();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Task> tasks_;
  bool stopping_ = false;
  std::thread thread_;  // last: the other members exist when it starts
};

}  // namespace motley::runtime
