#include "trace/summary.h"

#include <algorithm>

namespace motley::trace {

namespace {

void add(const Stretch& stretch, TimeShares& time) {
  const double passed = seconds(stretch.to - stretch.from);
  switch (stretch.phase) {
    case Phase::wait: time.wait_s += passed; break;
    case Phase::receive: time.receive_s += passed; break;
    case Phase::compute: time.compute_s += passed; break;
    case Phase::send: time.send_s += passed; break;
  }
}

}  // namespace

void Summary::on_event(const Event& e) {
  last_ = e.at;
  for (const auto& [worker, stretch] : activity_.on_event(e))
    if (Lane* const lane = lanes_.find(worker)) add(stretch, lane->sums.time);
  if (e.kind == Kind::joined)
    if (Lane* const joining = lanes_.announce(e.worker)) joining->sums.node = static_cast<std::uint32_t>(e.first);
  if (e.kind == Kind::applied) close_update();
  if (e.kind == Kind::evaluated) curve_.push_back({seconds(e.at), e.first, e.value, e.second});
  if (e.kind == Kind::returned) returned_ += e.last - e.first;
  if (Lane* const lane = lanes_.find(e.worker)) on_event(e, *lane);
}

void Summary::on_event(const Event& e, Lane& lane) {
  switch (e.kind) {
    case Kind::compute_began: lane.computing[e.step].began = e.at; break;
    case Kind::compute_ended:
      if (Finish* const step = lane.computing.find(e.step)) step->ended = e.at;
      break;
    case Kind::contributed:
      ++lane.sums.steps;
      transferred_s_ += e.second;
      if (const Finish* const step = lane.computing.find(e.step)) {
        transferred_s_ += seconds(e.at - step->ended);
        lane.finished[e.step] = *step;
        lane.computing.erase(e.step);
      }
      break;
    case Kind::dropped:
    case Kind::cancelled: lane.computing.erase(e.step); break;
    case Kind::discarded: lane.finished.erase(e.step); break;
    case Kind::counted: {
      lane.sums.samples += e.first;
      const std::size_t late = std::min<std::uint64_t>(e.last, most_late);
      if (staleness_.size() <= late) staleness_.resize(late + 1);
      ++staleness_[late];
      if (const Finish* const finish = lane.finished.find(e.step)) {
        if (update_.size() < most_parts) update_.push_back(*finish);
        lane.finished.erase(e.step);
      }
      break;
    }
    case Kind::held: ++lane.sums.held; break;
    default: break;  // of no worker, or of nothing that is summed up
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
  for (const auto& [worker, lane] : lanes_) result.push_back(lane.sums);
  return result;
}

TimeShares Summary::time() const {
  TimeShares all;
  for (const auto& [worker, lane] : lanes_) {
    all.compute_s += lane.sums.time.compute_s;
    all.send_s += lane.sums.time.send_s;
    all.receive_s += lane.sums.time.receive_s;
    all.wait_s += lane.sums.time.wait_s;
  }
  return all;
}

double Summary::overlap_ratio() const {
  const TimeShares all = time();
  if (transferred_s_ <= 0) return 0;
  return std::clamp(1 - (all.send_s + all.receive_s) / transferred_s_, 0.0, 1.0);
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
