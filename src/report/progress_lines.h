// Lines of a chief from which the launcher tells a process that dies now and then from one that cannot work. Few, whatever the length of
// the run:
//
//   progress of NODE      its work is in a new version, for the first time since it joined
//   progress to VERSION   the newest version, a few times a second
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
  /// To be called a few times a second.
  void tick();

 private:
  struct Member {
    std::uint32_t node = 0;
    bool reported = false;
  };
  void joined(WorkerId worker, std::uint32_t node);
  void contributed(WorkerId worker);
  void applied(Version version);

  std::function<void(const std::string&)> line_;
  const std::vector<std::string>& names_;
  trace::Members<Member> members_;
  std::set<WorkerId> parts_;  // members that contributed to the next update
  Version newest_{};
  Version recorded_{};
};

}  // namespace motley::report
