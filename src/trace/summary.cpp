#include "trace/summary.h"

#include <algorithm>

#include "base/match.h"

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

void Summary::on_event(const Event& event) {
  last_ = event.at;
  for (const auto& [worker, stretch] : activity_.on_event(event))
    if (Lane* const lane = lanes_.find(worker)) add(stretch, lane->sums.time);
  if (const auto* joined = event.as<Joined>())
    if (Lane* const joining = lanes_.announce(joined->worker)) joining->sums.node = joined->node;
  if (event.is<Applied>()) close_update();
  if (const auto* e = event.as<Evaluated>()) curve_.push_back({seconds(event.at), e->samples, e->accuracy, e->loss});
  if (const auto* e = event.as<Returned>()) returned_ += e->last - e->first;
  if (const auto worker = worker_of(event.data))
    if (Lane* const lane = lanes_.find(*worker)) update(*lane, event);
}

void Summary::update(Lane& lane, const Event& event) {
  std::visit(match{[&](const ComputeBegan& e) { lane.computing[e.step].began = event.at; },
                   [&](const ComputeEnded& e) {
                     if (Finish* const step = lane.computing.find(e.step)) step->ended = event.at;
                   },
                   [&](const Contributed& e) { contributed(lane, e, event.at); }, [&](const Counted& e) { counted(lane, e); },
                   [&](const Dropped& e) { lane.computing.erase(e.step); }, [&](const Cancelled& e) { lane.computing.erase(e.step); },
                   [&](const Discarded& e) { lane.finished.erase(e.step); }, [&](const Held&) { ++lane.sums.held; },
                   Ignored<Joined, Left, Ordered, Leased, Released, Applied, Idled, Evaluated, FaultInjected, Finished, Returned,
                           StateEntered, Straggles, Grouped, PartBegan, PartEnded, Committed, Repartitioned>{}},
             event.data);
}

void Summary::contributed(Lane& lane, const Contributed& contribution, Instant at) {
  ++lane.sums.steps;
  transferred_s_ += seconds(contribution.pull);
  const Finish* const step = lane.computing.find(contribution.step);
  if (step == nullptr) return;
  transferred_s_ += seconds(at - step->ended);
  lane.finished[contribution.step] = *step;
  lane.computing.erase(contribution.step);
}

void Summary::counted(Lane& lane, const Counted& contribution) {
  lane.sums.samples += contribution.samples;
  const std::size_t late = std::min<std::uint64_t>(contribution.staleness, most_late);
  if (staleness_.size() <= late) staleness_.resize(late + 1);
  ++staleness_[late];
  const Finish* const finish = lane.finished.find(contribution.step);
  if (finish == nullptr) return;
  if (update_.size() < most_parts) update_.push_back(*finish);
  lane.finished.erase(contribution.step);
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
