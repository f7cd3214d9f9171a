#include "trace/summary.h"

#include <algorithm>

namespace motley::trace {

namespace {

void add(const Stretch& stretch, TimeShares& time) {
  const double passed = seconds(stretch.to - stretch.from);
  switch (stretch.doing) {
    case Doing::wait: time.wait_s += passed; break;
    case Doing::receive: time.receive_s += passed; break;
    case Doing::compute: time.compute_s += passed; break;
    case Doing::send: time.send_s += passed; break;
  }
}

}  // namespace

void Summary::told(const Event& e) {
  last_ = e.at;
  for (const auto& [worker, stretch] : activity_.told(e)) add(stretch, lanes_[worker.value].sums.time);
  switch (e.kind) {
    case Kind::joined:
      if (lanes_.size() <= e.worker.value) lanes_.resize(e.worker.value + 1);
      lanes_[e.worker.value].sums.node = static_cast<std::uint32_t>(e.first);
      break;
    case Kind::compute_began: computing_[{e.worker, e.step}].began = e.at; break;
    case Kind::compute_ended:
      if (const auto step = computing_.find({e.worker, e.step}); step != computing_.end()) step->second.ended = e.at;
      break;
    case Kind::contributed:
      ++lanes_[e.worker.value].sums.steps;
      travelled_s_ += e.second;
      if (auto step = computing_.extract({e.worker, e.step})) {
        travelled_s_ += seconds(e.at - step.mapped().ended);
        finishes_.insert(std::move(step));
      }
      break;
    case Kind::dropped:
    case Kind::cancelled: computing_.erase({e.worker, e.step}); break;
    case Kind::discarded: finishes_.erase({e.worker, e.step}); break;
    case Kind::counted: {
      lanes_[e.worker.value].sums.samples += e.first;
      if (staleness_.size() <= e.last) staleness_.resize(e.last + 1);
      ++staleness_[e.last];
      const auto finish = finishes_.find({e.worker, e.step});
      if (finish != finishes_.end()) {
        update_.push_back(finish->second);
        finishes_.erase(finish);
      }
      break;
    }
    case Kind::applied: close_update(); break;
    case Kind::held: ++lanes_[e.worker.value].sums.held; break;
    case Kind::evaluated: curve_.push_back({seconds(e.at), e.first, e.value, e.second}); break;
    case Kind::left:
    case Kind::ordered:
    case Kind::leased:
    case Kind::released:
    case Kind::rested:
    case Kind::fault:
    case Kind::state:
    case Kind::straggles:
    case Kind::grouped:
    case Kind::part_began:
    case Kind::part_ended:
    case Kind::committed:
    case Kind::recut:
    case Kind::finished: break;
    case Kind::returned: returned_ += e.last - e.first; break;
  }
}

void Summary::close_update() {
  if (update_.size() > 1) {
    Instant first = Instant::max();
    Instant last{};
    double mean = 0;
    for (const Finish& finish : update_) {
      first = std::min(first, finish.ended);
      last = std::max(last, finish.ended);
      mean += seconds(finish.ended - finish.began) / static_cast<double>(update_.size());
    }
    if (mean > 0) spreads_.push_back(seconds(last - first) / mean);
  }
  update_.clear();
}

std::vector<WorkerSummary> Summary::workers() const {
  std::vector<WorkerSummary> result;
  for (const Lane& lane : lanes_) result.push_back(lane.sums);
  return result;
}

TimeShares Summary::time() const {
  TimeShares all;
  for (const Lane& lane : lanes_) {
    all.compute_s += lane.sums.time.compute_s;
    all.send_s += lane.sums.time.send_s;
    all.receive_s += lane.sums.time.receive_s;
    all.wait_s += lane.sums.time.wait_s;
  }
  return all;
}

double Summary::overlap_ratio() const {
  const TimeShares all = time();
  if (travelled_s_ <= 0) return 0;
  return std::clamp(1 - (all.send_s + all.receive_s) / travelled_s_, 0.0, 1.0);
}

double Summary::finish_spread() const {
  double sum = 0;
  const std::size_t from = spreads_.size() / 5;
  for (std::size_t i = from; i < spreads_.size(); ++i) sum += spreads_[i];
  return spreads_.empty() ? 0 : sum / static_cast<double>(spreads_.size() - from);
}

std::vector<Point> smoothed(const std::vector<Point>& curve) {
  std::vector<Point> result = curve;
  for (std::size_t i = 0; i < curve.size(); ++i) {
    const std::size_t from = i < 2 ? 0 : i - 2;
    result[i].accuracy = result[i].loss = 0;
    for (std::size_t j = from; j <= i; ++j) {
      result[i].accuracy += curve[j].accuracy / static_cast<double>(i - from + 1);
      result[i].loss += curve[j].loss / static_cast<double>(i - from + 1);
    }
  }
  return result;
}

std::optional<double> time_to_target(const std::vector<Point>& curve, double target) {
  const std::vector<Point> smooth = smoothed(curve);
  for (std::size_t i = 0; i < smooth.size(); ++i) {
    if (smooth[i].accuracy < target) continue;
    if (i == 0) return smooth[0].time_s;
    const Point& before = smooth[i - 1];
    return before.time_s + (smooth[i].time_s - before.time_s) * (target - before.accuracy) / (smooth[i].accuracy - before.accuracy);
  }
  return std::nullopt;
}

std::vector<Point> mean_of(const std::vector<std::vector<Point>>& curves) {
  if (curves.empty()) return {};
  std::size_t length = curves.front().size();
  for (const auto& curve : curves) length = std::min(length, curve.size());
  const double n = static_cast<double>(curves.size());
  std::vector<Point> mean(length);
  for (std::size_t i = 0; i < length; ++i) {
    double samples = 0;
    for (const auto& curve : curves) {
      mean[i].time_s += curve[i].time_s / n;
      mean[i].accuracy += curve[i].accuracy / n;
      mean[i].loss += curve[i].loss / n;
      samples += static_cast<double>(curve[i].samples) / n;
    }
    mean[i].samples = static_cast<std::uint64_t>(samples);
  }
  return mean;
}

}  // namespace motley::trace
