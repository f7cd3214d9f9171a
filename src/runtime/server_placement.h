// The servers of a job, as far as its chief knows them: their addresses, and the slices that each holds.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/time.h"
#include "store/layout.h"

namespace motley::runtime {

/// Server 0 is the chief itself. Knows no connection.
class ServerPlacement {
 public:
  /// `layout` before the distances of the servers are known; `receive_bandwidth` of the slowest worker, in bytes per second.
  ServerPlacement(store::Layout layout, double receive_bandwidth);

  /// One of the job's, and no process has registered as it.
  [[nodiscard]] bool is_free(ServerId server) const;
  /// `round_trip`: as the server has measured it. Requires is_free().
  void add(ServerId server, std::string address, Duration round_trip);
  [[nodiscard]] bool complete() const;

  /// Places the slices by the distances of the servers, once all are there and before any holds a slice. False: the layout is as before.
  bool place_slices();

  [[nodiscard]] const store::Layout& layout() const { return layout_; }
  /// By server; the chief's and those of absent servers are empty.
  [[nodiscard]] const std::vector<std::string>& addresses() const { return addresses_; }
  [[nodiscard]] double distance_s(ServerId server) const { return distances_s_[server.value]; }
  /// See store::place(); empty before place_slices() and with one server.
  [[nodiscard]] const std::vector<std::uint64_t>& head_starts() const { return head_starts_; }

 private:
  store::Layout layout_;
  double receive_bandwidth_;
  std::vector<bool> present_;
  std::vector<std::string> addresses_;
  std::vector<double> distances_s_;  // one way
  std::vector<std::uint64_t> head_starts_;
};

}  // namespace motley::runtime
