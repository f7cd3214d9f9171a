#include "app/progress_lines.h"

#include <fmt/format.h>

namespace motley::app {

void ProgressLines::told(const trace::Event& event) {
  using trace::Kind;
  if (event.kind == Kind::joined || event.kind == Kind::recut) {
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
      if (member == nullptr || member->told || member->node >= names_.size()) continue;
      member->told = true;
      line_(fmt::format("progress of {}", names_[member->node]));
    }
  }
  parts_.clear();
}

void ProgressLines::tick() {
  if (newest_ == told_) return;
  told_ = newest_;
  line_(fmt::format("progress to {}", newest_.value));
}

}  // namespace motley::app
