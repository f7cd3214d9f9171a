#include "runtime/attachments.h"

#include <iterator>

namespace motley::runtime {

Attachments::Answer Attachments::claimed(PeerConnection& from, const wire::Attach& claim) {
  waiting_.erase(&from);
  const auto key = keys_.find(claim.worker);
  if (key != keys_.end()) return key->second == claim.key ? attached(claim.worker, from) : Answer::refuse;
  waiting_[&from] = {&from, claim};
  return Answer::wait;
}

Attachments::Answer Attachments::attached(WorkerId worker, const PeerConnection& from) {
  return attached_.try_emplace(worker, &from).first->second == &from ? Answer::attach : Answer::refuse;
}

void Attachments::forget(WorkerId worker) {
  keys_.erase(worker);
  attached_.erase(worker);
}

void Attachments::closed(const PeerConnection& connection) {
  waiting_.erase(&connection);
  std::erase_if(attached_, [&](const auto& one) { return one.second == &connection; });
}

std::vector<Attachments::Claim> Attachments::admitted(const wire::Admitted& member) {
  keys_.emplace(member.worker, member.key);
  std::vector<Claim> answers;
  for (auto it = waiting_.begin(); it != waiting_.end();) {
    const Waiting& waiting = it->second;
    const bool meant = waiting.claim.worker == member.worker;
    if (meant) answers.push_back({waiting.from, waiting.claim.key == member.key ? attached(member.worker, *waiting.from) : Answer::refuse});
    it = meant ? waiting_.erase(it) : std::next(it);
  }
  return answers;
}

}  // namespace motley::runtime
