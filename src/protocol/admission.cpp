#include "protocol/admission.h"

#include <algorithm>
#include <tuple>

namespace motley::protocol {

void Admission::wait(Instant now, std::uint32_t connection, const wire::Hello& hello) {
  empty_since_.reset();
  if (pending_.empty()) first_ = now;
  pending_.insert_or_assign(connection, hello);
}

std::vector<Admission::Pending> Admission::take_all() {
  std::vector<Pending> all(pending_.begin(), pending_.end());
  pending_.clear();
  std::stable_sort(all.begin(), all.end(), [](const Pending& a, const Pending& b) {
    return std::tie(a.second.node_index, a.second.node) < std::tie(b.second.node_index, b.second.node);
  });
  return all;
}

void Admission::admitted(std::uint32_t connection, WorkerId worker) {
  members_[connection] = worker;
  empty_since_.reset();
}

std::optional<WorkerId> Admission::admitted_on(std::uint32_t connection) const {
  const auto found = members_.find(connection);
  return found == members_.end() ? std::nullopt : std::optional(found->second);
}

void Admission::disconnected(Instant now, std::uint32_t connection) {
  members_.erase(connection);
  if (pending_.erase(connection) > 0 && pending_.empty()) empty_since_ = now;
}

void Admission::driver_paused(Duration time) {
  first_ += time;
  if (empty_since_) *empty_since_ += time;
}

}  // namespace motley::protocol
