#include "transport/pending.h"

#include <algorithm>

namespace motley::transport {

std::optional<Pending::Id> Pending::add(Id id, const std::string& source) {
  const std::optional<Id> dropped = size_ >= most_ ? victim() : std::nullopt;
  by_source_[source].push_back(id);
  ++size_;
  return dropped;
}

void Pending::remove(Id id, const std::string& source) {
  const auto found = by_source_.find(source);
  if (found == by_source_.end()) return;
  size_ -= std::erase(found->second, id);
  if (found->second.empty()) by_source_.erase(found);
}

std::optional<Pending::Id> Pending::victim() {
  const auto heaviest = std::max_element(by_source_.begin(), by_source_.end(),
                                         [](const auto& a, const auto& b) { return a.second.size() < b.second.size(); });
  if (heaviest == by_source_.end()) return std::nullopt;
  return heaviest->second[draws_.below((heaviest->second.size() + 1) / 2)];
}

}  // namespace motley::transport
