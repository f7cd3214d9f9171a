// Validates messages for a shard: the claims of its peers are bounded by what it knows of their steps.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/match.h"
#include "protocol/shard.h"

namespace motley::protocol {
namespace {

// Open steps of one worker beyond the oldest one. With overlap there are two or three; this bounds the contributions that a server keeps
// for a worker that pushes without orders.
constexpr std::uint64_t most_open_steps = 16;

}  // namespace

void Shard::end(WorkerId worker, Step step) {
  if (forgotten_.contains(worker)) return;
  Ended& ended = ended_[worker];
  if (step < ended.below) return;
  if (step != ended.below) {
    ended.beyond.insert(step);
    return;
  }
  ended.below = step.next();
  for (auto next = ended.beyond.begin(); next != ended.beyond.end() && *next == ended.below; next = ended.beyond.erase(next))
    ended.below = ended.below.next();
}

bool Shard::ended(WorkerId worker, Step step) const {
  const auto found = ended_.find(worker);
  return found != ended_.end() && (step < found->second.below || found->second.beyond.contains(step));
}

bool Shard::is_over(const wire::Push& push) const {
  return forgotten_.contains(push.worker) || unwanted_.contains({push.worker, push.step}) || ended(push.worker, push.step);
}

wire::Objection Shard::objection(const wire::Message& message) const {
  const auto unless = [](bool holds, std::string_view why) { return holds ? wire::Objection{} : wire::Objection{why}; };
  const auto whole_here = [&](WorkerId worker, Step step) {
    const auto found = arrived_.find({worker, step});
    return found != arrived_.end() && whole(found->second);
  };
  return std::visit(
      match{[&](const wire::Push& m) { return objection_to_push(m); }, [&](const wire::Apply& m) { return objection_to_update(m); },
            [&](const wire::AlignmentTest& m) {
              return unless(whole_here(m.worker, m.step), "an AlignmentTest names a contribution that is not complete here");
            },
            [&](const wire::Export& m) { return unless(m.version == version_, "an Export names a version that is not the newest"); },
            [&](const wire::Release& m) { return unless(!forgotten_.contains(m.worker), "a Release names a former member"); },
            [](const auto&) { return wire::Objection{}; }},
      message);
}

wire::Objection Shard::objection_to_push(const wire::Push& push) const {
  const auto slice = std::lower_bound(slices_.begin(), slices_.end(), push.slice);
  if (slice == slices_.end() || *slice != push.slice)
    return fmt::format("slice {} does not belong to server {}", push.slice.value, server_.value);
  if (is_over(push)) return {};
  const auto found = ended_.find(push.worker);
  const Step below = found == ended_.end() ? Step{} : found->second.below;
  if (push.step.ahead_of(below) >= most_open_steps)
    return fmt::format("step {} of worker {} was never ordered: the oldest open step is {}", push.step.value, push.worker.value,
                       below.value);
  const auto partial = arrived_.find({push.worker, push.step});
  if (partial != arrived_.end() && partial->second.here[static_cast<std::size_t>(slice - slices_.begin())])
    return fmt::format("slice {} of step {} of worker {} was sent twice", push.slice.value, push.step.value, push.worker.value);
  return {};
}

wire::Objection Shard::objection_to_update(const wire::Apply& update) const {
  if (update.version != version_.next()) return fmt::format("update {} was sent after update {}", update.version.value, version_.value);
  std::set<std::pair<WorkerId, Step>> parts;
  for (const wire::Part& part : update.parts) {
    const auto found = arrived_.find({part.worker, part.step});
    if (found == arrived_.end() || !whole(found->second) || !parts.emplace(part.worker, part.step).second)
      return fmt::format("step {} of worker {} is to be applied, but is not complete here or was applied before", part.step.value,
                         part.worker.value);
  }
  return {};
}

}  // namespace motley::protocol
