// The links of emulated nodes: the pipes that a connection's slices pass, with the same numbers as the simulator's network.
#pragma once
#include <boost/asio/any_io_executor.hpp>
#include <memory>
#include <optional>
#include <vector>

#include "base/ids.h"
#include "cluster/spec.h"
#include "transport/shaped.h"

namespace motley::runtime {

/// The link of an emulated worker, up and down, shared by its connections to all servers.
class WorkerLink {
 public:
  WorkerLink(const boost::asio::any_io_executor& executor, const cluster::Spec& spec, NodeId node);
  /// Towards one server: only the latency differs.
  [[nodiscard]] transport::Shape shape(std::uint32_t server) const;

 private:
  cluster::Spec spec_;
  Duration latency_;
  double server_bytes_per_second_;
  std::shared_ptr<transport::Pipe> up_;
  std::shared_ptr<transport::SharedLink> down_;
};

/// The network card of a server and the uplinks of the nodes' groups behind it, shared by its connections to all emulated nodes.
class ServerLinks {
 public:
  ServerLinks(const boost::asio::any_io_executor& executor, const cluster::Spec& spec, ServerId server);
  /// None for a node that is not emulated: its link is real.
  [[nodiscard]] std::optional<transport::Shape> towards(NodeId node_id) const;

 private:
  cluster::Spec spec_;
  ServerId server_;
  std::shared_ptr<transport::Pipe> out_;
  std::shared_ptr<transport::SharedLink> in_;
  std::vector<std::shared_ptr<transport::SharedLink>> group_up_, group_down_;
};

}  // namespace motley::runtime
