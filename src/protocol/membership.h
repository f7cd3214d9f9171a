// Membership: who belongs, since when it was last heard, who has been silent for too long. Ids are given once and never again, so whoever
// comes back is somebody new and everything said under the old id is fenced. Safety never depends on the deadline, only liveness does.
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
  /// False when it is no member: its words must be ignored.
  bool record_contact(Instant now, WorkerId worker);
  /// Nobody could be heard for so long.
  void driver_paused(Duration time);
  /// Members silent since before now - deadline, ascending.
  [[nodiscard]] std::vector<WorkerId> silent(Instant now) const;
  [[nodiscard]] std::size_t size() const { return members_.size(); }
  [[nodiscard]] bool contains(WorkerId worker) const { return members_.contains(worker); }
  /// The id that the next one gets. After a restart ids go on where they were: those from before stay fenced.
  [[nodiscard]] WorkerId next_id() const { return WorkerId{next_}; }
  void go_on_from(WorkerId next) { next_ = next.value; }
  [[nodiscard]] const std::string& node(WorkerId worker) const { return members_.at(worker).node; }
  /// Ascending.
  [[nodiscard]] std::vector<WorkerId> all() const;

 private:
  struct Member {
    std::string node;
    Instant last_heard{};
  };
  Duration deadline_;
  std::map<WorkerId, Member> members_;
  WorkerId::Rep next_ = 0;
};

}  // namespace motley::protocol
