// Which connections of a server belong to which members: a member shows the key that the chief gave to it and, elsewhere, to the server.
// The two ways have unlike lengths, so whoever comes before the chief's word waits for it.
#pragma once
#include <map>
#include <optional>
#include <vector>

#include "transport/transport.h"
#include "wire/message.h"
#include "wire/permissions.h"

namespace motley::runtime {

class Attachments {
 public:
  enum class Answer { attach, wait, refuse };
  /// A connection claims to be this member's.
  Answer claimed(transport::Connection& from, const wire::Attach& claim);
  /// The chief's word of a member: who had claimed to be it before, and whether rightly.
  struct Claim {
    transport::Connection* from = nullptr;
    Answer answer{};
  };
  std::vector<Claim> admitted(const wire::Admitted& member);
  [[nodiscard]] bool knows(WorkerId worker) const { return keys_.contains(worker); }
  void forget(WorkerId worker);
  void closed(const transport::Connection& connection);

 private:
  /// A second connection for one member is refused: what has been looked at on the one must not be overwritten through the other.
  Answer attached(WorkerId worker, const transport::Connection& from);

  std::map<WorkerId, std::uint64_t> keys_;
  std::map<WorkerId, const transport::Connection*> attached_;
  struct Waiting {
    transport::Connection* from = nullptr;
    wire::Attach claim;
  };
  std::map<const transport::Connection*, Waiting> waiting_;  // the last claim of each
};

}  // namespace motley::runtime
