#include "report/progress_lines.h"

#include <fmt/format.h>

namespace motley::report {

void ProgressLines::on_event(const trace::Event& event) {
  using trace::Kind;
  if (event.kind == Kind::joined || event.kind == Kind::repartition) {
    if (Member* const joining = members_.announce(event.worker))
      *joining = {event.kind == Kind::joined ? event.first : std::uint64_t{event.epoch}, false};
  } else if (event.kind == Kind::left) {
    members_.erase(event.worker);
  } else if (event.kind == Kind::counted || event.kind == Kind::committed) {
    if (members_.find(event.worker) != nullptr) parts_.insert(event.worker);
  } else if (event.kind == Kind::applied) {
    applied(event.version);
  }
}

void ProgressLines::applied(Version version) {
  if (version > newest_) {
    newest_ = version;
    for (const WorkerId worker : parts_) {
      Member* const member = members_.find(worker);
      if (member == nullptr || member->reported || member->node >= names_.size()) continue;
      member->reported = true;
      line_(fmt::format("progress of {}", names_[member->node]));
    }
  }
  parts_.clear();
}

void ProgressLines::tick() {
  if (newest_ == recorded_) return;
  recorded_ = newest_;
  line_(fmt::format("progress to {}", newest_.value));
}

}  // namespace motley::report
