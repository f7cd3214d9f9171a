#include "run/stage_desk.h"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <cmath>
#include <exception>
#include <utility>

namespace motley::run {

using plan::Part;

StageDesk::StageDesk(boost::asio::io_context& pump, std::optional<cluster::Device> emulated, StageDeskOwner& owner)
    : pump_(pump), owner_(owner), as_described_(std::move(emulated)), emulated_(as_described_), alive_(std::make_shared<bool>(true)) {}

StageDesk::~StageDesk() {
  *alive_ = false;
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  stop();
}

void StageDesk::stop() {
  const std::lock_guard lock(mutex_);
  ++life_;
  changed_.notify_all();
}

std::uint64_t StageDesk::current() {
  const std::lock_guard lock(mutex_);
  return life_;
}

bool StageDesk::over(std::uint64_t life) { return life != current(); }

/// Does `what` on the desk's thread, unless its setting is over by then.
void StageDesk::post(std::uint64_t life, std::function<void()> what) {
  ++given_;
  thread_.post([this, life, what = std::move(what)] {
    if (!over(life) && !broken_) {
      try {
        what();
      } catch (const std::exception& failure) {  // torch
        broken_ = true;
        report(life, [this, text = std::string(failure.what())] { owner_.failed(text); });
      }
    }
    ++done_;
  });
}

void StageDesk::when_free(std::function<void()> then) {
  thread_.post([this, then = std::move(then)] {
    boost::asio::post(pump_, [alive = alive_, then] {
      if (*alive) then();
    });
  });
}

void StageDesk::report(std::uint64_t life, std::function<void()> what) {
  boost::asio::post(pump_, [this, alive = alive_, life, what = std::move(what)] {
    if (*alive && !over(life)) what();
  });
}

void StageDesk::lay_out(StageSetting setting) {
  stop();
  const std::uint64_t life = current();
  thread_.post([this] { broken_ = false; });
  post(life, [this, held = std::make_shared<StageSetting>(std::move(setting))] {
    if (held->clock.now() < device_free_) {  // another conductor, another time: the device's day begins again
      emulated_ = as_described_;
      device_free_ = {};
    }
    setting_.emplace(std::move(*held));
    replica_.reset();  // first: two of them may not fit
    replica_ = setting_->make();
  });
}

void StageDesk::run(StageWork work) {
  const std::uint64_t life = current();
  post(life, [this, life, held = std::make_shared<StageWork>(std::move(work))] { compute(life, held); });
}

void StageDesk::compute(std::uint64_t life, const std::shared_ptr<StageWork>& work) {
  const std::uint64_t micro = work->part.micro;
  switch (work->part.part) {
    case Part::forward: {
      replica_->begin(micro, work->part.late, work->rate);
      work->finite = std::isfinite(replica_->forward(micro, work->in, work->out).sum);
      work->stash_bytes = static_cast<std::uint64_t>(static_cast<double>(replica_->kept()) * setting_->kept_bytes) +
                          replica_->old_versions() * replica_->values()->size() * sizeof(float);
      break;
    }
    case Part::input: replica_->input_gradient(micro, work->in, work->out); break;
    case Part::weight: replica_->weight_gradient(micro); break;
  }
  work->in = {};
  work->ended = setting_->clock.now();
  if (emulated_ && !setting_->parts_s.empty()) {
    const Instant start = std::max(work->began, device_free_);
    const Instant end = emulated_->spend(start, from_seconds(setting_->parts_s[static_cast<std::size_t>(work->part.part)]));
    std::unique_lock lock(mutex_);
    if (changed_.wait_until(lock, setting_->clock.real(end), [&] { return life != life_; })) {
      // A device that hangs hears of that when it moves again.
      changed_.wait_until(lock, setting_->clock.real(emulated_->hangs_until(setting_->clock.now())), [&] { return closing_; });
      return;
    }
    work->began = start;
    work->ended = std::max(work->ended, end);  // mathematics that took longer shows
    device_free_ = work->ended;
  }
  report(life, [this, work] { owner_.done(*work); });
}

void StageDesk::commit(std::uint64_t mini, double rate) {
  post(current(), [this, mini, rate] { replica_->commit(mini, rate); });
}

void StageDesk::hand_in(std::uint64_t mini_batches) {
  const std::uint64_t life = current();
  post(life, [this, life, mini_batches] {
    auto part = std::make_shared<const store::StagePart>(replica_->part());
    report(life, [this, mini_batches, part] { owner_.handed_in(mini_batches, part); });
  });
}

}  // namespace motley::run
