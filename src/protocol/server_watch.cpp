#include "protocol/server_watch.h"

#include <algorithm>

namespace motley::protocol {

std::vector<ServerId> ServerWatch::ask(Instant now) {
  std::vector<ServerId> servers;
  for (std::uint32_t s = 0; s < asked_.size(); ++s) {
    if (asked_[s]) continue;
    asked_[s] = now;
    servers.push_back(ServerId{s});
  }
  return servers;
}

void ServerWatch::answered(ServerId server) {
  if (server.value < asked_.size()) asked_[server.value].reset();
}

void ServerWatch::driver_paused(Duration time) {
  for (auto& asked : asked_)
    if (asked) *asked += time;
}

std::optional<ServerWatch::Silent> ServerWatch::silent(Instant now) const {
  for (std::uint32_t s = 0; s < asked_.size(); ++s)
    if (asked_[s] && now - *asked_[s] > limit_) return Silent{ServerId{s}, now - *asked_[s]};
  return std::nullopt;
}

bool ServerWatch::all_have_answered() const {
  return std::none_of(asked_.begin(), asked_.end(), [](const auto& asked) { return asked.has_value(); });
}

}  // namespace motley::protocol
