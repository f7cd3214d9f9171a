// The links of emulated nodes: which pipes a connection's slices pass, from the same numbers as the simulator's network.
#pragma once
#include <boost/asio/any_io_executor.hpp>
#include <memory>
#include <optional>
#include <vector>

#include "base/ids.h"
#include "cluster/spec.h"
#include "transport/shaped.h"

namespace motley::runtime {

/// The end of an emulated worker, towards one server: its own link, up and down.
class WorkerLink {
 public:
  WorkerLink(const boost::asio::any_io_executor& executor, const cluster::Spec& spec, NodeId node);
  /// The same link for each server; what is further away only takes longer.
  [[nodiscard]] transport::Shape shape(std::uint32_t server) const;

 private:
  cluster::Spec spec_;
  Duration latency_;
  double server_bytes_per_second_;
  std::shared_ptr<transport::Pipe> up_;
  std::shared_ptr<transport::SharedLink> down_;
};

/// The end of a server: its network card, and beyond it the uplinks of the nodes' groups; shared by all connections to emulated nodes.
class ServerLinks {
 public:
  ServerLinks(const boost::asio::any_io_executor& executor, const cluster::Spec& spec, ServerId server);
  /// Nothing for a node that is not emulated: its links are real.
  [[nodiscard]] std::optional<transport::Shape> towards(NodeId node_id) const;

 private:
  cluster::Spec spec_;
  ServerId server_;
  std::shared_ptr<transport::Pipe> out_;
  std::shared_ptr<transport::SharedLink> in_;
  std::vector<std::shared_ptr<transport::SharedLink>> group_up_, group_down_;
};

}  // namespace motley::runtime
