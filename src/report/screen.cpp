#include "report/screen.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "base/match.h"

namespace motley::report {
namespace {

constexpr std::size_t bar_width = 30;
constexpr std::size_t most_workers = 16;  // a terminal has few lines

}  // namespace

void Screen::change_state(Member* member, const std::string& state, Instant now) {
  if (member == nullptr) return;
  if (member->state == "computing" && state != "sending") return;  // hides concurrent transfers
  if (member->state == "waiting" && state != "waiting") member->waited_s += seconds(now - member->waiting_since);
  if (member->state != "waiting" && state == "waiting") member->waiting_since = now;
  member->state = state;
}

void Screen::joined(WorkerId worker, std::uint64_t node, Instant now) {
  Member* const member = members_.announce(worker);
  if (member == nullptr) return;
  member->node = node < names_.size() ? names_[node] : fmt::format("node {}", node);
  member->since = member->waiting_since = now;
}

void Screen::on_event(const trace::Event& event) {
  using namespace trace;
  now_ = std::max(now_, event.at);
  const auto state = [&](WorkerId worker, const char* next) { change_state(members_.find(worker), next, event.at); };
  std::visit(
      match{[&](const Joined& e) { joined(e.worker, e.node, event.at); }, [&](const Left& e) { members_.erase(e.worker); },
            [&](const Ordered& e) {
              if (Member* const member = members_.find(e.worker)) member->batch = e.samples;
            },
            [&](const Released& e) { released(e, event.at); }, [&](const ComputeBegan& e) { state(e.worker, "computing"); },
            [&](const ComputeEnded& e) { state(e.worker, "sending"); }, [&](const Cancelled& e) { state(e.worker, "waiting"); },
            [&](const Contributed& e) { state(e.worker, "waiting"); }, [&](const Idled& e) { state(e.worker, "resting"); },
            [&](const Counted& e) { counted(e); }, [&](const Evaluated& e) { evaluated(e); },
            [&](const Applied& e) {
              if (options_.update_samples > 0) counted_ = samples_of(e.version);
            },
            [&](const Repartitioned& e) { repartitioned(e, event.at); }, [&](const PartBegan& e) { state(e.stage, "computing"); },
            [&](const PartEnded& e) {
              state(e.stage, "sending");
              state(e.stage, "waiting");
            },
            Ignored<Leased, Returned, Held, Dropped, Discarded, StateEntered, Straggles, Grouped, Committed, FaultInjected, Finished>{}},
      event.data);
}

void Screen::released(const trace::Released& released, Instant at) {
  Member* const member = members_.find(released.worker);
  if (member == nullptr) return;
  member->push_bits = released.push_bits;
  member->pull_bits = released.pull_bits;
  change_state(member, "receiving", at);
}

void Screen::counted(const trace::Counted& contribution) {
  counted_ += contribution.samples;
  if (Member* const member = members_.find(contribution.worker)) member->samples += contribution.samples;
}

void Screen::evaluated(const trace::Evaluated& evaluation) {
  accuracy_ = evaluation.accuracy;
  loss_ = evaluation.loss;
  counted_ = std::max(counted_, evaluation.samples);
  evaluated_ = true;
  if (!options_.terminal) fmt::print(stderr, "{}\n", lines().front());
}

/// Stage 0 is recorded first: the members of the old layout are gone.
void Screen::repartitioned(const trace::Repartitioned& layout, Instant at) {
  if (layout.stage.value == 0) members_.clear();
  joined(layout.stage, layout.node, at);
  counted_ = samples_of(layout.version);
}

std::vector<std::string> Screen::lines() const {
  const double share =
      options_.total_samples > 0 ? std::min(1.0, static_cast<double>(counted_) / static_cast<double>(options_.total_samples)) : 0;
  const double speed = seconds(now_) > 0 ? static_cast<double>(counted_) / seconds(now_) : 0;
  std::string first =
      fmt::format("{} [{:<{}}] {:3.0f} %  {:.0f} s  {:.0f} samples/s", options_.title,
                  std::string(static_cast<std::size_t>(share * bar_width), '='), bar_width, share * 100, seconds(now_), speed);
  if (options_.sum_of_parts > 0) first += fmt::format(" ({:.0f} % of the sum of the parts)", 100 * speed / options_.sum_of_parts);
  if (evaluated_) first += fmt::format("  accuracy {:.2f} %  loss {:.3f}", accuracy_ * 100, loss_);
  std::vector<std::string> all{first};
  if (!options_.terminal) return all;
  for (const auto& [worker, member] : members_) {
    if (all.size() > most_workers) {
      all.push_back(fmt::format("  and {} more", members_.size() - most_workers));
      break;
    }
    const double here = seconds(now_ - member.since);
    const double waited = member.waited_s + (member.state == "waiting" ? seconds(now_ - member.waiting_since) : 0);
    if (options_.update_samples > 0) {
      all.push_back(fmt::format("  stage {:<3} {:<16} busy {:>3.0f} %", worker.value + 1, member.node,
                                here > 0 ? 100 * std::max(0.0, 1 - waited / here) : 0));
      continue;
    }
    all.push_back(fmt::format("  {:<16} {:>7.0f} samples/s  batch {:>5}  bits {:>2}/{:<2}  waits {:>3.0f} %  {}", member.node,
                              here > 0 ? static_cast<double>(member.samples) / here : 0, member.batch, member.push_bits, member.pull_bits,
                              here > 0 ? 100 * waited / here : 0, member.state));
  }
  return all;
}

void Screen::erase() {
  if (painted_ > 0) fmt::print(stderr, "\x1b[{}A\x1b[J", painted_);
  painted_ = 0;
}

void Screen::tick() {
  if (!options_.terminal) return;
  const auto all = lines();
  erase();
  for (const std::string& line : all) fmt::print(stderr, "{}\n", line);
  painted_ = all.size();
  std::fflush(stderr);
}

void Screen::say(const std::string& sentence) {
  erase();
  fmt::print(stderr, "{}\n", sentence);
  tick();
}

void Screen::finish() {
  tick();
  painted_ = 0;
}

}  // namespace motley::report
