// Numbers the steps of each worker and writes its orders: on which parameters it computes, in how many local steps, by when.
//
// While a worker holds the newest parameters, unchanged since, its next order refers to them and servers send nothing.
#pragma once
#include <cstdint>
#include <map>
#include <optional>

#include "base/ids.h"
#include "base/lease.h"
#include "base/time.h"
#include "policy/strategy.h"
#include "protocol/step_table.h"
#include "wire/message.h"

namespace motley::protocol {

class OrderIssuer {
 public:
  /// `shard`: of the data set, from which its samples come first. `bf16_transfer`: uncoded parameters are sent as bf16.
  void join(WorkerId worker, std::uint32_t shard, bool bf16_transfer) { workers_[worker] = {shard, {}, bf16_transfer, {}}; }
  void leave(WorkerId worker) { workers_.erase(worker); }
  [[nodiscard]] std::uint32_t shard(WorkerId worker) const { return workers_.at(worker).shard; }

  struct Request {
    policy::Plan plan;
    Lease lease;      // not empty; may be smaller than planned
    Version version;  // the newest
    double rate{};    // learning rate of now
    Duration trained{};
  };
  struct Issued {
    std::optional<wire::Release> release;  // to every server; none: the worker holds the newest parameters
    wire::Order order;
    PendingStep step;
  };
  [[nodiscard]] Issued issue(Instant now, WorkerId worker, Request request, const policy::Strategy& strategy, const StepTable& steps);

 private:
  struct Pull {
    Step step;
    Version version;
    double rho{};
  };
  struct Worker {
    std::uint32_t shard = 0;
    Step next;
    bool bf16_transfer = false;
    std::optional<Pull> pull;  // the last parameters released to it
  };
  std::map<WorkerId, Worker> workers_;
};

}  // namespace motley::protocol
