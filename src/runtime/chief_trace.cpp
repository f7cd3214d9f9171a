#include "runtime/chief_trace.h"

#include <algorithm>
#include <utility>

namespace motley::runtime {

ChiefTrace::ChiefTrace(const cluster::Spec& cluster, Duration trained_before, Sink sink)
    : trained_before_(trained_before), sink_(std::move(sink)) {
  for (const cluster::Node& node : cluster.nodes) node_names_.push_back(node.name);
}

void ChiefTrace::start(Instant now) {
  if (!started_) started_ = now;
}

Instant ChiefTrace::trained(Instant now) const {
  return Instant{trained_before_ + (started_ ? std::max(now - *started_, Duration{0}) : Duration{0})};
}

void ChiefTrace::record(Instant at, const trace::EventData& data) {
  const trace::Event event{trained(at), data};
  if (held_back_) return held_events_.push_back(event);
  sink_(event);
}

void ChiefTrace::record_outcome(const protocol::TrainingOutcome& outcome) {
  if (std::exchange(outcome_recorded_, true)) return;
  held_back_ = false;
  sink_({outcome.ended, trace::Finished{.why = static_cast<std::uint8_t>(outcome.why), .samples = outcome.samples}});
  for (const trace::Event& event : std::exchange(held_events_, {})) sink_(event);
}

std::uint32_t ChiefTrace::node_index(const std::string& name, std::optional<NodeId> node) {
  if (node) return node->value;
  const auto found = std::find(node_names_.begin(), node_names_.end(), name);
  if (found != node_names_.end()) return static_cast<std::uint32_t>(found - node_names_.begin());
  node_names_.push_back(name);
  return static_cast<std::uint32_t>(node_names_.size() - 1);
}

}  // namespace motley::runtime
