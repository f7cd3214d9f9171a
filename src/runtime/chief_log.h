// Sentences about workers and servers that a chief gives up, for its log and its end.
#pragma once
#include <optional>
#include <string>

#include "protocol/chief.h"

namespace motley::runtime {

/// `worker`: see ChiefPeers::describe(). None: a worker that ends or is lost is reported where its connection closes.
[[nodiscard]] std::optional<std::string> expulsion_text(const std::string& worker, const protocol::Left& left,
                                                        const protocol::ChiefOptions& options);

[[nodiscard]] std::string server_stuck_text(const protocol::ServerStuck& stuck, const std::string& address, Duration step_limit);
[[nodiscard]] std::string server_lost_text(ServerId server, const std::string& address, const std::string& why);

}  // namespace motley::runtime
