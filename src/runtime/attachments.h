// Matches a server's connections to workers: the chief gives a worker a key and tells it to the server; the worker shows it on its
// connection. Either message may arrive first, so a claim that arrives before the chief's message waits for it.
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
  /// A connection claims to belong to this worker.
  Answer claimed(transport::Connection& from, const wire::Attach& claim);
  /// The chief has admitted this worker. Returns the waiting claims to it, each with its answer.
  struct Claim {
    transport::Connection* from = nullptr;
    Answer answer{};
  };
  std::vector<Claim> admitted(const wire::Admitted& member);
  [[nodiscard]] bool knows(WorkerId worker) const { return keys_.contains(worker); }
  void forget(WorkerId worker);
  void closed(const transport::Connection& connection);

 private:
  /// A second connection for one worker is refused: it must not overwrite slices that were received and checked on the first.
  Answer attached(WorkerId worker, const transport::Connection& from);

  std::map<WorkerId, std::uint64_t> keys_;
  std::map<WorkerId, const transport::Connection*> attached_;
  struct Waiting {
    transport::Connection* from = nullptr;
    wire::Attach claim;
  };
  std::map<const transport::Connection*, Waiting> waiting_;  // the last claim of each connection
};

}  // namespace motley::runtime
