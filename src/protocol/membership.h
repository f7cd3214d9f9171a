// Membership: the current members, the time of the last message from each, and which have been silent for too long. Ids are never reused: a
// worker that rejoins gets a new id, and messages under the old one are fenced. Only liveness depends on the deadline, safety does not.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/time.h"

namespace motley::protocol {

class Membership {
 public:
  explicit Membership(Duration silence_deadline) : deadline_(silence_deadline) {}

  WorkerId join(Instant now, std::string node);
  void leave(WorkerId worker) { members_.erase(worker); }
  /// False when it is not a member: its message must be ignored.
  bool record_contact(Instant now, WorkerId worker);
  /// No message could be received for this long.
  void driver_paused(Duration time);
  /// Members silent since before now - deadline, ascending.
  [[nodiscard]] std::vector<WorkerId> silent(Instant now) const;
  [[nodiscard]] std::size_t size() const { return members_.size(); }
  [[nodiscard]] bool contains(WorkerId worker) const { return members_.contains(worker); }
  /// The id of the next member. Continues after a restart, so that earlier ids stay fenced.
  [[nodiscard]] WorkerId next_id() const { return WorkerId{next_}; }
  void go_on_from(WorkerId next) { next_ = next.value; }
  [[nodiscard]] const std::string& node(WorkerId worker) const { return members_.at(worker).node; }
  /// Ascending.
  [[nodiscard]] std::vector<WorkerId> all() const;

 private:
  struct Member {
    std::string node;
    Instant last_contact{};
  };
  Duration deadline_;
  std::map<WorkerId, Member> members_;
  WorkerId::Rep next_ = 0;
};

}  // namespace motley::protocol
