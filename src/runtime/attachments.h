// Which connections of a server belong to which members: a member shows the key that the chief sent to it and to the server. The two
// messages take different ways, so a claim may arrive before the chief has named the member: then it waits.
#pragma once
#include <map>
#include <optional>
#include <vector>

#include "runtime/peer_connection.h"
#include "wire/message.h"

namespace motley::runtime {

class Attachments {
 public:
  enum class Answer { attach, wait, refuse };
  /// A connection claims to be this member's.
  Answer claimed(PeerConnection& from, const wire::Attach& claim);
  struct Claim {
    PeerConnection* from = nullptr;
    Answer answer{};
  };
  /// The chief names a member and its key. Answers to the claims that waited for it.
  std::vector<Claim> admitted(const wire::Admitted& member);
  [[nodiscard]] bool knows(WorkerId worker) const { return keys_.contains(worker); }
  void forget(WorkerId worker);
  void closed(const PeerConnection& connection);

 private:
  /// A second connection of one member is refused: memory whose values were checked must not be overwritten through the other connection.
  Answer attached(WorkerId worker, const PeerConnection& from);

  std::map<WorkerId, std::uint64_t> keys_;
  std::map<WorkerId, const PeerConnection*> attached_;
  struct Waiting {
    PeerConnection* from = nullptr;
    wire::Attach claim;
  };
  std::map<const PeerConnection*, Waiting> waiting_;  // the last claim of each
};

}  // namespace motley::runtime
