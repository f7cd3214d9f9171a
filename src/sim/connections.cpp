#include "sim/connections.h"

#include <algorithm>

namespace motley::sim {

std::uint32_t Connections::open(std::uint32_t node) {
  connections_.push_back({node, std::nullopt});
  return static_cast<std::uint32_t>(connections_.size() - 1);
}

void Connections::admit(std::uint32_t connection, WorkerId worker) {
  of_worker_.resize(std::max<std::size_t>(of_worker_.size(), worker.value + 1));
  of_worker_[worker.value] = connection;
  connections_[connection].member = worker;
}

}  // namespace motley::sim
