#include "protocol/membership.h"

#include <utility>

namespace motley::protocol {

WorkerId Membership::join(Instant now, std::string node) {
  const WorkerId worker{next_++};
  members_.emplace(worker, Member{std::move(node), now});
  return worker;
}

bool Membership::record_contact(Instant now, WorkerId worker) {
  const auto found = members_.find(worker);
  if (found == members_.end()) return false;
  found->second.last_contact = now;
  return true;
}

void Membership::driver_paused(Duration time) {
  for (auto& [worker, member] : members_) member.last_contact += time;
}

std::vector<WorkerId> Membership::silent(Instant now) const {
  std::vector<WorkerId> result;
  for (const auto& [worker, member] : members_)
    if (now - member.last_contact > deadline_) result.push_back(worker);
  return result;
}

std::vector<WorkerId> Membership::all() const {
  std::vector<WorkerId> result;
  result.reserve(members_.size());
  for (const auto& [worker, member] : members_) result.push_back(worker);
  return result;
}

}  // namespace motley::protocol
