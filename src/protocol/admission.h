// Admission: workers that said Hello and are not members yet, and the connection by which each member came.
//
// Before training starts, pending workers wait for the quorum or for the start deadline. They are then admitted in the order of their node
// indices, so that ids, leases and the order of summation do not depend on the order of connecting.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "base/time.h"
#include "wire/message.h"

namespace motley::protocol {

class Admission {
 public:
  struct Options {
    std::uint32_t quorum = 1;
    Duration start_deadline{};  // the first pending worker waits no longer for the quorum
    Duration empty_deadline{};  // training is given up when it has had neither members nor pending workers for so long
  };
  explicit Admission(const Options& options) : options_(options) {}

  using Pending = std::pair<std::uint32_t, wire::Hello>;  // connection, last Hello on it

  void wait(Instant now, std::uint32_t connection, const wire::Hello& hello);
  [[nodiscard]] bool has_quorum() const { return pending_.size() >= options_.quorum; }
  [[nodiscard]] bool start_overdue(Instant now) const { return !pending_.empty() && now - first_ > options_.start_deadline; }
  /// Removes all pending workers and returns them by node index, then node name, then connection.
  [[nodiscard]] std::vector<Pending> take_all();
  [[nodiscard]] const std::map<std::uint32_t, wire::Hello>& pending() const { return pending_; }

  void admitted(std::uint32_t connection, WorkerId worker);
  [[nodiscard]] std::optional<WorkerId> admitted_on(std::uint32_t connection) const;
  void disconnected(Instant now, std::uint32_t connection);
  void last_member_left(Instant now) { empty_since_ = now; }
  [[nodiscard]] bool empty_for_too_long(Instant now) const { return empty_since_ && now - *empty_since_ > options_.empty_deadline; }
  void driver_paused(Duration time);

 private:
  Options options_;
  std::map<std::uint32_t, wire::Hello> pending_;
  std::map<std::uint32_t, WorkerId> members_;  // by connection; kept after the worker has left
  Instant first_{};                            // arrival of the first pending worker
  std::optional<Instant> empty_since_;
};

}  // namespace motley::protocol
