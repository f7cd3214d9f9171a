// What `motley train` must know of a run to tell a process that now and then dies from one that cannot work: how far training has come, and
// whose work is in it. Lines for the launcher, few however long the run:
//
//   progress of NODE      it has had a part in a version that there had not been yet, for the first time since it joined
//   progress to VERSION   the newest, a few times a second
#pragma once
#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "trace/event.h"
#include "trace/members.h"

namespace motley::report {

class ProgressLines : public trace::Sink {
 public:
  ProgressLines(std::function<void(const std::string&)> line, const std::vector<std::string>& node_names)
      : line_(std::move(line)), names_(node_names) {}

  void on_event(const trace::Event& event) override;
  /// Due a few times a second.
  void tick();

 private:
  struct Member {
    std::uint64_t node = 0;
    bool reported = false;
  };
  void applied(Version version);

  std::function<void(const std::string&)> line_;
  const std::vector<std::string>& names_;
  trace::Members<Member> members_;
  std::set<WorkerId> parts_;  // members that the next update has work of
  Version newest_{};
  Version recorded_{};
};

}  // namespace motley::report
