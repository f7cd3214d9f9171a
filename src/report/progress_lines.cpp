#include "report/progress_lines.h"

#include <fmt/format.h>

namespace motley::report {

void ProgressLines::on_event(const trace::Event& event) {
  if (const auto* joining = event.as<trace::Joined>()) joined(joining->worker, joining->node);
  if (const auto* layout = event.as<trace::Repartitioned>()) joined(layout->stage, layout->node);
  if (const auto* left = event.as<trace::Left>()) members_.erase(left->worker);
  if (const auto* contribution = event.as<trace::Counted>()) contributed(contribution->worker);
  if (const auto* update = event.as<trace::Committed>()) contributed(update->stage);
  if (const auto* update = event.as<trace::Applied>()) applied(update->version);
}

void ProgressLines::joined(WorkerId worker, std::uint32_t node) {
  if (Member* const joining = members_.announce(worker)) *joining = {node, false};
}

void ProgressLines::contributed(WorkerId worker) {
  if (members_.find(worker) != nullptr) parts_.insert(worker);
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
