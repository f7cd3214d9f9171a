// The chief's connections to simulated workers. Each start of a node's worker opens a new one; a message on an older one reaches no
// process.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "base/ids.h"

namespace motley::sim {

class Connections {
 public:
  /// The number of the new connection; numbers are dense from 0 and never reused.
  std::uint32_t open(std::uint32_t node);
  /// The chief has admitted the worker at the other end.
  void admit(std::uint32_t connection, WorkerId worker);

  [[nodiscard]] std::uint32_t node(std::uint32_t connection) const { return connections_[connection].node; }
  /// None before it is admitted.
  [[nodiscard]] std::optional<WorkerId> member(std::uint32_t connection) const { return connections_[connection].member; }
  /// Of an admitted worker.
  [[nodiscard]] std::uint32_t of(WorkerId worker) const { return of_worker_[worker.value]; }
  [[nodiscard]] std::uint32_t node_of(WorkerId worker) const { return node(of(worker)); }

 private:
  struct Connection {
    std::uint32_t node = 0;
    std::optional<WorkerId> member;
  };
  std::vector<Connection> connections_;
  std::vector<std::uint32_t> of_worker_;  // by WorkerId
};

}  // namespace motley::sim
