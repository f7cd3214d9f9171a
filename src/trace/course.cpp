#include "trace/course.h"

#include <algorithm>

namespace motley::trace {

void Course::told(const Event& e) {
  const std::pair key{e.worker, e.step};
  switch (e.kind) {
    case Kind::joined:
      if (lanes_.size() <= e.worker.value) lanes_.resize(e.worker.value + 1);
      lanes_[e.worker.value].node = static_cast<std::uint32_t>(e.first);
      break;
    case Kind::released: under_way_[key] = {e.value, e.second, e.at}; break;
    case Kind::ordered:
      if (const auto step = under_way_.find(key); step != under_way_.end()) step->second.local_steps = std::max<std::uint64_t>(e.last, 1);
      break;
    case Kind::compute_ended:
      if (const auto step = under_way_.find(key); step != under_way_.end()) step->second.ended = e.at;
      break;
    case Kind::contributed:
      if (const auto step = under_way_.find(key); step != under_way_.end())
        lanes_[e.worker.value].shares.add(
            {seconds(e.at), e.first, step->second.push_bits, step->second.pull_bits, step->second.local_steps});
      break;
    case Kind::counted:
      if (const auto step = under_way_.extract(key)) ends_.push_back(step.mapped().ended);
      break;
    case Kind::cancelled:
    case Kind::discarded:
    case Kind::dropped: under_way_.erase(key); break;
    case Kind::applied:
      if (ends_.size() > 1) {
        const auto [first, last] = std::minmax_element(ends_.begin(), ends_.end());
        finishes_.add({seconds(e.at), seconds(*last - *first)});
      }
      ends_.clear();
      break;
    default: break;  // the rest says nothing about this
  }
}

std::vector<Course::Worker> Course::workers() const {
  std::vector<Worker> result;
  for (const Lane& lane : lanes_) result.push_back({lane.node, lane.shares.values()});
  return result;
}

}  // namespace motley::trace
