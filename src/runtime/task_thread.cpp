#include "runtime/task_thread.h"

#include <utility>

namespace motley::runtime {

TaskThread::TaskThread() : thread_([this] { work(); }) {}

TaskThread::~TaskThread() {
  std::deque<Task> dropped;  // what they hold goes outside the lock: it may want to post
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    dropped.swap(tasks_);
  }
  changed_.notify_one();
  dropped.clear();
  thread_.join();
}

void TaskThread::post(Task task) {
  {
    const std::lock_guard lock(mutex_);
    if (stopping_) return;
    tasks_.push_back(std::move(task));
  }
  changed_.notify_one();
}

void TaskThread::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return stopping_ || !tasks_.empty(); });
    if (stopping_) return;
    Task task = std::move(tasks_.front());
    tasks_.pop_front();
    lock.unlock();
    task();
    task = nullptr;  // what it holds goes before the next one starts
    lock.lock();
  }
}

}  // namespace motley::runtime
