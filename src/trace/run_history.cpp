#include "trace/run_history.h"

#include <algorithm>

namespace motley::trace {

void RunHistory::on_event(const Event& e) {
  if (e.kind == Kind::joined)
    if (Lane* const joining = lanes_.announce(e.worker)) joining->node = static_cast<std::uint32_t>(e.first);
  if (e.kind == Kind::applied) {
    if (ends_.size() > 1) {
      const auto [first, last] = std::minmax_element(ends_.begin(), ends_.end());
      finishes_.add({seconds(e.at), seconds(*last - *first)});
    }
    ends_.clear();
  }
  if (Lane* const lane = lanes_.find(e.worker)) on_event(e, *lane);
}

void RunHistory::on_event(const Event& e, Lane& lane) {
  if (e.kind == Kind::released) lane.under_way[e.step] = {e.value, e.second, e.at};
  UnderWay* const step = lane.under_way.find(e.step);
  if (step == nullptr) return;
  switch (e.kind) {
    case Kind::ordered: step->local_steps = std::max<std::uint64_t>(e.last, 1); break;
    case Kind::compute_ended: step->ended = e.at; break;
    case Kind::contributed: lane.shares.add({seconds(e.at), e.first, step->push_bits, step->pull_bits, step->local_steps}); break;
    case Kind::counted:
      if (ends_.size() < most_parts) ends_.push_back(step->ended);
      lane.under_way.erase(e.step);
      break;
    case Kind::cancelled:
    case Kind::discarded:
    case Kind::dropped: lane.under_way.erase(e.step); break;
    default: break;  // the rest says nothing about this
  }
}

std::vector<RunHistory::Worker> RunHistory::workers() const {
  std::vector<Worker> result;
  for (const auto& [worker, lane] : lanes_) result.push_back({lane.node, lane.shares.values()});
  return result;
}

}  // namespace motley::trace
