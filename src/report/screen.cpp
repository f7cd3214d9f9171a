#include "report/screen.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

namespace motley::report {
namespace {

constexpr std::size_t bar_width = 30;
constexpr std::size_t most_workers = 16;  // lines of a terminal are few

}  // namespace

void Screen::turn(Member* member, const std::string& state, Instant now) {
  if (member == nullptr) return;
  if (member->state == "computing" && state != "sending") return;  // what travels meanwhile is hidden
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
  using trace::Kind;
  now_ = std::max(now_, event.at);
  Member* const member = members_.find(event.worker);
  switch (event.kind) {
    case Kind::joined: joined(event.worker, event.first, event.at); break;
    case Kind::left: members_.erase(event.worker); break;
    case Kind::ordered:
      if (member != nullptr) member->batch = event.first;
      break;
    case Kind::released:
      if (member != nullptr) {
        member->push_bits = event.value;
        member->pull_bits = event.second;
      }
      turn(member, "receiving", event.at);
      break;
    case Kind::compute_began: turn(member, "computing", event.at); break;
    case Kind::compute_ended: turn(member, "sending", event.at); break;
    case Kind::cancelled:
    case Kind::contributed: turn(member, "waiting", event.at); break;
    case Kind::idled: turn(member, "resting", event.at); break;
    case Kind::counted:
      counted_ += event.first;
      if (member != nullptr) member->samples += event.first;
      break;
    case Kind::evaluated:
      accuracy_ = event.value;
      loss_ = event.second;
      counted_ = std::max(counted_, event.first);
      evaluated_ = true;
      if (!options_.terminal) fmt::print(stderr, "{}\n", lines().front());
      break;
    case Kind::applied:
      if (options_.update_samples > 0) counted_ = samples_of(event.version);
      break;
    case Kind::repartition:
      if (event.worker.value == 0) members_.clear();  // another layout
      joined(event.worker, event.epoch, event.at);
      counted_ = samples_of(event.version);
      break;
    case Kind::part_began: turn(member, "computing", event.at); break;
    case Kind::part_ended:
      turn(member, "sending", event.at);
      turn(member, "waiting", event.at);
      break;
    case Kind::leased:
    case Kind::returned:
    case Kind::held:
    case Kind::dropped:
    case Kind::discarded:
    case Kind::state:
    case Kind::straggles:
    case Kind::grouped:
    case Kind::committed:
    case Kind::fault:
    case Kind::finished: break;
  }
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
