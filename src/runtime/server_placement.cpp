#include "runtime/server_placement.h"

#include <algorithm>
#include <utility>

namespace motley::runtime {

ServerPlacement::ServerPlacement(store::Layout layout, double receive_bandwidth)
    : layout_(std::move(layout)),
      receive_bandwidth_(receive_bandwidth),
      present_(layout_.servers),
      addresses_(layout_.servers),
      distances_s_(layout_.servers) {
  present_.front() = true;
}

bool ServerPlacement::is_free(ServerId server) const {
  return server.value > 0 && server.value < layout_.servers && !present_[server.value];
}

void ServerPlacement::add(ServerId server, std::string address, Duration round_trip) {
  present_[server.value] = true;
  addresses_[server.value] = std::move(address);
  distances_s_[server.value] = std::max(0.0, seconds(round_trip) / 2);
}

bool ServerPlacement::complete() const { return std::find(present_.begin(), present_.end(), false) == present_.end(); }

bool ServerPlacement::place_slices() {
  head_starts_ = store::head_starts(distances_s_, receive_bandwidth_);
  if (std::all_of(head_starts_.begin(), head_starts_.end(), [](std::uint64_t late) { return late == 0; })) return false;
  store::place(layout_, head_starts_);
  return true;
}

}  // namespace motley::runtime
