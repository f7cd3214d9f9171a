#include "runtime/stage_executor.h"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <cmath>
#include <exception>
#include <utility>

namespace motley::runtime {

using pipeline::Part;

StageExecutor::StageExecutor(boost::asio::io_context& event_loop, std::optional<cluster::Device> emulated, StageExecutorOwner& owner)
    : event_loop_(event_loop),
      owner_(owner),
      as_described_(std::move(emulated)),
      emulated_(as_described_),
      alive_(std::make_shared<bool>(true)) {}

StageExecutor::~StageExecutor() {
  *alive_ = false;
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  stop();
}

void StageExecutor::stop() {
  const std::lock_guard lock(mutex_);
  ++incarnation_;
  changed_.notify_all();
}

std::uint64_t StageExecutor::current() {
  const std::lock_guard lock(mutex_);
  return incarnation_;
}

bool StageExecutor::over(std::uint64_t incarnation) { return incarnation != current(); }

/// Runs `what` on the executor's thread, unless its configuration is replaced by then.
void StageExecutor::post(std::uint64_t incarnation, std::function<void()> what) {
  ++given_;
  thread_.post([this, incarnation, what = std::move(what)] {
    if (!over(incarnation) && !broken_) {
      try {
        what();
      } catch (const std::exception& failure) {  // torch
        broken_ = true;
        report(incarnation, [this, text = std::string(failure.what())] { owner_.failed(text); });
      }
    }
    ++done_;
  });
}

void StageExecutor::when_free(std::function<void()> then) {
  thread_.post([this, then = std::move(then)] {
    boost::asio::post(event_loop_, [alive = alive_, then] {
      if (*alive) then();
    });
  });
}

void StageExecutor::report(std::uint64_t incarnation, std::function<void()> what) {
  boost::asio::post(event_loop_, [this, alive = alive_, incarnation, what = std::move(what)] {
    if (*alive && !over(incarnation)) what();
  });
}

void StageExecutor::configure(StageConfig config) {
  stop();
  const std::uint64_t incarnation = current();
  thread_.post([this] { broken_ = false; });
  post(incarnation, [this, held = std::make_shared<StageConfig>(std::move(config))] {
    if (held->clock.now() < device_free_) {  // a new chief with a new clock: the emulated device starts over
      emulated_ = as_described_;
      device_free_ = {};
    }
    config_.emplace(std::move(*held));
    replica_.reset();  // first: two replicas may not fit into memory
    replica_ = config_->make();
  });
}

void StageExecutor::run(StageWork work) {
  const std::uint64_t incarnation = current();
  post(incarnation, [this, incarnation, held = std::make_shared<StageWork>(std::move(work))] { compute(incarnation, held); });
}

void StageExecutor::compute(std::uint64_t incarnation, const std::shared_ptr<StageWork>& work) {
  const std::uint64_t micro = work->part.micro;
  switch (work->part.part) {
    case Part::forward: {
      replica_->begin(micro, work->part.late, work->rate);
      work->finite = std::isfinite(replica_->forward(micro, work->in, work->out).loss_sum);
      work->stash_bytes = static_cast<std::uint64_t>(static_cast<double>(replica_->kept()) * config_->kept_bytes) +
                          replica_->old_versions() * replica_->values()->size() * sizeof(float);
      break;
    }
    case Part::input: replica_->input_gradient(micro, work->in, work->out); break;
    case Part::weight: replica_->weight_gradient(micro); break;
  }
  work->in = {};
  work->ended = config_->clock.now();
  if (emulated_ && !config_->parts_s.empty()) {
    const Instant start = std::max(work->began, device_free_);
    const Instant end = emulated_->spend(start, from_seconds(config_->parts_s[static_cast<std::size_t>(work->part.part)]));
    std::unique_lock lock(mutex_);
    if (changed_.wait_until(lock, config_->clock.real(end), [&] { return incarnation != incarnation_; })) {
      // An emulated device that hangs notices the cancellation when it resumes.
      changed_.wait_until(lock, config_->clock.real(emulated_->hangs_until(config_->clock.now())), [&] { return closing_; });
      return;
    }
    work->began = start;
    work->ended = std::max(work->ended, end);  // computing that took longer than emulated is visible
    device_free_ = work->ended;
  }
  report(incarnation, [this, work] { owner_.done(*work); });
}

void StageExecutor::commit(std::uint64_t mini, double rate) {
  post(current(), [this, mini, rate] { replica_->commit(mini, rate); });
}

void StageExecutor::submit_state(std::uint64_t mini_batches) {
  const std::uint64_t incarnation = current();
  post(incarnation, [this, incarnation, mini_batches] {
    auto part = std::make_shared<const store::StagePart>(replica_->part());
    report(incarnation, [this, mini_batches, part] { owner_.state_submitted(mini_batches, part); });
  });
}

}  // namespace motley::runtime
