// Prepares data and model for a job on a background thread: reading a data set may take minutes, and the process must answer meanwhile.
#pragma once
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "base/result.h"
#include "runtime/log.h"
#include "runtime/task_thread.h"

namespace motley::runtime {

template <class Setup>
class JobPreparation {
 public:
  using Prepare = std::function<Result<Setup>(const std::string& job)>;

  /// `prepare` is called on the background thread.
  JobPreparation(boost::asio::io_context& event_loop, Prepare prepare, Log log)
      : event_loop_(event_loop), prepare_(std::move(prepare)), log_(std::move(log)) {}

  /// Calls `then` on the event-loop thread, even after this object is gone: bind it (callback_scope.h).
  void start(std::string job, std::function<void(Result<Setup>)> then) {
    log_("preparing data and model");
    thread_.post([this, job = std::move(job), then = std::move(then)] {
      auto setup = std::make_shared<Result<Setup>>(prepare_(job));
      boost::asio::post(event_loop_, [then, setup] { then(std::move(*setup)); });
    });
  }

 private:
  boost::asio::io_context& event_loop_;
  Prepare prepare_;
  Log log_;
  TaskThread thread_;  // last: ends first
};

}  // namespace motley::runtime
